package contract

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// good is a package that nothing is wrong with; cases change one line of it.
const good = `package op
type Ptr uint64
type Stream interface{ Fail(err error) }
type DType int32
const F32 DType = 1
type Scheme int32
const SchemeQ8_0 Scheme = 2
type Weight struct { Data Ptr; Scheme Scheme; Rows int32 }
type Core interface { Norm(Stream, Norm) }
type Attention interface{}
type MoE interface{}
type Sampler interface{}
type Drafting interface{}
type Packer interface{ PackedBytes(scheme Scheme, rows, cols int32) int64 }
type ( Memory interface{}; Fused interface{ } )
type Norm struct {
	Out  Ptr ` + "`atlas:\"out act [Rows:Pitch,(Cols+1)/2]\"`" + `
	In   Ptr ` + "`atlas:\"in? Type [Rows,W.Rows]\"`" + `
	W    Weight ` + "`atlas:\"in\"`" + `
	Rows, Cols, Pitch int32
	Type DType
}
type Recurrent interface{}
`

func read(t *testing.T, source string) (*Contract, error) {
	t.Helper()
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "op.go"), []byte(source), 0o666); err != nil {
		t.Fatal(err)
	}
	return Read(root, ".")
}

func TestRead(t *testing.T) {
	c, err := read(t, good)
	if err != nil {
		t.Fatal(err)
	}
	op := c.Op("Norm")
	if op == nil || !op.Required || op.Size != 48 || c.Weight.Size != 16 {
		t.Fatalf("Norm: got %+v, weight %+v", op, c.Weight)
	}
	out, in := op.Field("Out"), op.Field("In")
	if out.Role != Out || out.Optional || out.Elem != "act" || len(out.Dims) != 2 || out.Dims[0] != (Dim{"Rows", "Pitch"}) || out.Dims[1] != (Dim{Size: "(Cols+1)/2"}) {
		t.Errorf("Out: got %+v", out)
	}
	if in.Role != In || !in.Optional || in.Elem != "Type" || in.Offset != 8 {
		t.Errorf("In: got %+v", in)
	}
	if w := op.Weight(); w == nil || w.Name != "W" || w.Offset != 16 {
		t.Errorf("W: got %+v", w)
	}
	if c.Op("Other") != nil {
		t.Error("Other: want none")
	}
	if k := c.ConstantsOf("Scheme"); len(k) != 1 || k[0] != (Constant{"SchemeQ8_0", "ATLAS_SCHEME_Q8_0", "Scheme", 2}) {
		t.Errorf("schemes: got %+v", k)
	}
}

// A method that returns a bool is served in part.
func TestPartial(t *testing.T) {
	for _, c := range []struct {
		old, new          string
		required, partial bool
	}{
		{"Norm(Stream, Norm)", "Norm(Stream, Norm)", true, false},
		{"Norm(Stream, Norm)", "Norm(Stream, Norm) bool", true, true},
		{"type Core interface { Norm(Stream, Norm) }", "type ( Core interface{}; Other interface { Norm(Stream, Norm) } )", false, false},
		{"type Core interface { Norm(Stream, Norm) }", "type ( Core interface{}; Other interface { Norm(Stream, Norm) bool } )", false, true},
	} {
		contract, err := read(t, strings.Replace(good, c.old, c.new, 1))
		if err != nil {
			t.Fatal(err)
		}
		if op := contract.Op("Norm"); op.Required != c.required || op.Partial != c.partial {
			t.Errorf("%s: got required %v partial %v, want %v %v", c.new, op.Required, op.Partial, c.required, c.partial)
		}
	}
}

func TestMustFail(t *testing.T) {
	out := "Out  Ptr `atlas:\"out act [Rows:Pitch,(Cols+1)/2]\"`"
	cases := []struct{ old, new, want string }{
		{"Type DType", "Type DType; X int64; Y int32", "op.go:16: 4 bytes of hidden padding at the end of Norm (end it with a field named _)"},
		{"Rows, Cols, Pitch int32", "Rows, Cols int32; Odd uint32; Big int64; Pitch int32", "op.go:20: 4 bytes of hidden padding before Norm.Big"},
		{"Scheme Scheme; Rows int32", "Scheme Scheme", "op.go:8: 4 bytes of hidden padding at the end of Weight"},
		{"Type DType", "Type *DType", "op.go:21: Norm.Type is a *DType, which means nothing to a kernel (use Ptr for memory of the device)"},
		{"Type DType", "Type string", "op.go:21: Norm.Type is a string"},
		{"Type DType", "Type [2]int32", "op.go:21: Norm.Type is a [2]int32"},
		{"Type DType", "Type float64", "op.go:21: Norm.Type is a float64, which has no counterpart"},
		{"Type DType", "Type bool", "op.go:21: Norm.Type is a bool, which has no counterpart"},
		{"type DType int32", "type DType int64", "op.go:21: Norm.Type: type DType is a int64"},
		{out, "Out Ptr", "op.go:17: Norm.Out has no atlas tag"},
		{out, "Out Ptr `json:\"out\"`", "op.go:17: Norm.Out: unknown struct tag `json:\"out\"`"},
		{out, "Out Ptr `atlas:\"out act [Rows]\" json:\"out\"`", "op.go:17: Norm.Out: unknown struct tag"},
		{out, "Out Ptr `atlas:\"to act [Rows]\"`", `op.go:17: Norm.Out: unknown role "to" (use in, out or inout)`},
		{out, "Out Ptr `atlas:\"\"`", `op.go:17: Norm.Out: unknown role ""`},
		{out, "Out Ptr `atlas:\"out [Rows]\"`", `op.go:17: Norm.Out: tag "out [Rows]" lacks a type or dimensions`},
		{out, "Out Ptr `atlas:\"out f33 [Rows]\"`", `op.go:17: Norm.Out: "f33" is neither an element type nor a DType field of Norm (did you mean f32?)`},
		{out, "Out Ptr `atlas:\"out Rows [Rows]\"`", `op.go:17: Norm.Out: "Rows" is neither an element type`},
		{out, "Out Ptr `atlas:\"out act Rows\"`", `op.go:17: Norm.Out: dimensions "Rows" are not in brackets`},
		{out, "Out Ptr `atlas:\"out act [Rows,Colls]\"`", `op.go:17: Norm.Out: Norm has no integer field "Colls" (did you mean Cols?)`},
		{out, "Out Ptr `atlas:\"out act [W.Row]\"`", `op.go:17: Norm.Out: Weight has no integer field "Row" (did you mean Rows?)`},
		{out, "Out Ptr `atlas:\"out act [Q.Rows]\"`", `op.go:17: Norm.Out: "Q.Rows" in dimension "Q.Rows" (only a Weight has fields of its own)`},
		{out, "Out Ptr `atlas:\"out act [Rows:Pitch:2]\"`", `op.go:17: Norm.Out: dimension "Rows:Pitch:2" has 2 colons`},
		{out, "Out Ptr `atlas:\"out act [Rows,]\"`", `op.go:17: Norm.Out: dimension "" does not parse`},
		{out, "Out Ptr `atlas:\"out act [len(Rows)]\"`", `op.go:17: Norm.Out: "len(Rows)" in dimension "len(Rows)" is not allowed`},
		{out, "Out Ptr `atlas:\"out act [Type]\"`", `op.go:17: Norm.Out: Norm has no integer field "Type"`},
		{"Type DType", "Type DType `atlas:\"step\"`", "op.go:21: Norm.Type is no pointer, so it has no role"},
		{"Type DType", "Type DType `atlas:\"in\"`", "op.go:21: Norm.Type is no pointer, so it has no role"},
		{"Weight `atlas:\"in\"`", "Weight `atlas:\"in act [Rows]\"`", "op.go:19: Norm.W: a Weight has a role only"},
		{"Weight `atlas:\"in\"`", "Weight", "op.go:19: Norm.W has no atlas tag"},
		{"Data Ptr;", "Data Ptr `atlas:\"in\"`;", "op.go:8: Weight.Data is no pointer, so it has no role"},
		{"Norm(Stream, Norm)", "Norm(Norm)", "op.go:9: method Core.Norm is no operation (write Norm(Stream, Norm))"},
		{"Norm(Stream, Norm)", "Norm(Stream, Norm) int", "op.go:9: method Core.Norm is no operation"},
		{"Norm(Stream, Norm)", "", "op.go:16: struct Norm has atlas tags, but no interface has it as an operation"},
		{"Norm(Stream, Norm)", "Norm(Stream, Norm); Gone(Stream, Gone)", "op.go:9: undefined: Gone"},
		{"type Weight struct { Data Ptr; Scheme Scheme; Rows int32 }", "type Weight int32", "package op has no struct Weight"},
		{"type MoE interface{}", "", "package op has no interface MoE"},
		{"type MoE interface{}", "type MoE interface{", "op.go:12: expected '}'"},
		{"type MoE interface{}", "type MoE Missing", "op.go:11: undefined: Missing"},
	}
	for _, c := range cases {
		source := strings.Replace(good, c.old, c.new, 1)
		if source == good {
			t.Fatalf("%q does not occur", c.old)
		}
		_, err := read(t, source)
		if got := text(err); !strings.Contains(got, c.want) {
			t.Errorf("%s → %s: got\n%s\nwant\n%s", c.old, c.new, got, c.want)
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestAtlas reads the contract of the tree: what the compiler says about it, package unsafe must say too.
func TestAtlas(t *testing.T) {
	c, err := Read("../../..", "atlasrt/op")
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range c.Ops {
		if op.Size%8 != 0 {
			t.Errorf("%s: got %d bytes; scratch memory's address behind it wants a multiple of 8", op.Name, op.Size)
		}
	}
}
