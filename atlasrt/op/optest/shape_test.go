package optest

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// A shape makes a case of the same shape.
func TestShapedCase(t *testing.T) {
	w := op.Weight{Scheme: op.SchemeQ8_0, Rows: 48, Cols: 64, Count: 1}
	stack := op.Weight{Scheme: op.SchemeBF16, Rows: 48, Cols: 64, Count: 4}
	cases := []any{
		op.Linear{W: w, Rows: 3, OutPitch: 50},
		op.Logits{W: w, Rows: 3, InRows: 7},
		op.ExpertUp{W: stack, Rows: 3, TopK: 2},
		op.ExpertDown{W: stack, Rows: 3, TopK: 2},
		op.RMSNorm{Rows: 3, Cols: 64},
		op.SwiGLU{Rows: 3, Cols: 64},
	}
	for _, args := range cases {
		want := ShapeOf(args)
		c, err := shapedCase(want)
		if err != nil {
			t.Errorf("%+v: %v", want, err)
			continue
		}
		if got := ShapeOf(c.args.Interface()); got.Op != want.Op || !maps.Equal(got.Args, want.Args) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	}
	for _, s := range []Shape{{Op: "Sample", Args: map[string]int64{"Rows": 1}}, {Op: ""}, {Op: "Linear", Args: map[string]int64{"Rows": -1}}} {
		if _, err := shapedCase(s); err == nil {
			t.Errorf("%+v: got no error", s)
		}
	}
}

// Whatever a file says, a case is made or refused, soon.
func FuzzShapedCase(f *testing.F) {
	f.Add(`{"Op":"Linear","Args":{"Rows":1,"W.Rows":64,"W.Cols":64,"W.Scheme":2}}`)
	f.Add(`{"Op":"ExpertUp","Args":{"Rows":1048576,"W.Rows":64,"W.Cols":64,"W.Scheme":1,"W.Count":1048576,"TopK":1}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var s Shape
		if json.Unmarshal([]byte(text), &s) == nil {
			_, _ = shapedCase(s)
		}
	})
}

func TestRecorder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shapes.json")
	r, err := NewRecorder(path)
	if err != nil {
		t.Fatal(err)
	}
	set := r.Watch(oracle.New(op.F32))
	q, err := host.New(0).Stream(0)
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		set.SwiGLU(q, op.SwiGLU{Cols: 8})
	}
	set.SwiGLU(q, op.SwiGLU{Cols: 16})
	set.Copy(q, op.Copy{})
	if err := q.Sync(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got Shapes
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Shapes) != 2 || got.Shapes[0].Args["Cols"]+got.Shapes[1].Args["Cols"] != 24 || got.Shapes[0].Count+got.Shapes[1].Count != 5 {
		t.Errorf("got %s, want five calls of SwiGLU in two shapes", text)
	}
	if _, err := NewRecorder(filepath.Join(path, "x")); err == nil {
		t.Error("a path that cannot be written: got no error")
	}
}
