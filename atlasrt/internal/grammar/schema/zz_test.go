package schema

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestZZ(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(testdata(t), "suite", "*.json"))
	for _, f := range files {
		content, _ := os.ReadFile(f)
		var groups []suiteGroup
		json.Unmarshal(content, &groups)
		for _, g := range groups {
			start := time.Now()
			m, err := compile(string(g.Schema), Options{})
			mid := time.Now()
			if m != nil {
				for _, x := range g.Tests {
					accepts(m, string(x.Data))
				}
			}
			if d := time.Since(start); d > 200*time.Millisecond {
				t.Log(filepath.Base(f), g.Description, mid.Sub(start), time.Since(mid), err)
			}
		}
	}
}
