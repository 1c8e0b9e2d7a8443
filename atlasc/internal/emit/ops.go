package emit

import "github.com/atlas-inference/atlas/atlasc/internal/contract"

// OpsFile lists the operations for Go code that treats all of them alike.
const OpsFile = Folder + "/ops/zops.go"

// opsCode writes OpsFile: the operations that every set has.
func opsCode(c *contract.Contract) ([]byte, error) {
	data := struct {
		Mark string
		Ops  []*contract.Struct
	}{Mark: Mark}
	for _, s := range c.Ops {
		if s.Required {
			data.Ops = append(data.Ops, s)
		}
	}
	return executeGo("zops.go.tmpl", data)
}
