package expr

import (
	"errors"
	"go/parser"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasc/internal/contract"
)

func scope(t testing.TB) *Scope {
	t.Helper()
	return scopeWith(t, 8)
}

// scopeWith has a constant kTile of that value.
func scopeWith(t testing.TB, tile int64) *Scope {
	t.Helper()
	root := t.TempDir()
	source := `package op
type Ptr uint64
type Stream interface{}
type DType int32
const BF16 DType = 2
type Scheme int32
const ( SchemeBF16 Scheme = 1; SchemeQ8_0 Scheme = 2 )
type Weight struct { Data Ptr; Scheme Scheme; Rows int32 }
type Core interface { Linear(Stream, Linear) }
type Attention interface{}
type Recurrent interface{}
type MoE interface{}
type Sampler interface{}
type Drafting interface{}
type Packer interface{}
type ( Memory interface{}; Fused interface{} )
type Linear struct {
	Bias  Ptr ` + "`atlas:\"in? f32 [Rows]\"`" + `
	W     Weight ` + "`atlas:\"in\"`" + `
	Other Weight ` + "`atlas:\"in\"`" + `
	Count int64
	Rows  int32 ` + "`atlas:\"step\"`" + `
	Cols  int32
	Words uint32
	Type  DType
	Scale float32
	_     int32
}`
	if err := os.WriteFile(filepath.Join(root, "op.go"), []byte(source), 0o666); err != nil {
		t.Fatal(err)
	}
	c, err := contract.Read(root, ".")
	if err != nil {
		t.Fatal(err)
	}
	return OpScope(c, c.Op("Linear"), []string{"vnni", "exact"}, map[string]int64{"kTile": tile, "kBelow": -1})
}

func TestBool(t *testing.T) {
	s := scope(t)
	cases := []struct{ text, want string }{
		{"Rows <= 4 && !exact", "a.Rows <= 4 && !s.has.exact"},
		{"4 >= Rows", "4 >= a.Rows"},
		{"Rows == Cols", "a.Rows == a.Cols"},
		{"Rows == Words", "int64(a.Rows) == int64(a.Words)"},
		{"Words < 1<<31", "a.Words < 2147483648"},
		{"Rows < 1<<31", "int64(a.Rows) < 2147483648"},
		{"Rows*Cols > 1<<31", "int64(a.Rows) * int64(a.Cols) > 2147483648"},
		{"(Rows+1)%kTile == 0", "(int64(a.Rows) + 1) % 8 == 0"},
		{"Count > 3 || vnni", "a.Count > 3 || s.has.vnni"},
		{"W.Scheme != SchemeQ8_0 && W.Rows > 2", "a.W.Scheme != op.SchemeQ8_0 && a.W.Rows > 2"},
		{"Type == BF16", "a.Type == op.BF16"},
		{"Bias != 0", "a.Bias != 0"},
		{"Scale > 0.5", "a.Scale > 0.5"},
		{"min(Rows, Cols) > 2", "min(int64(a.Rows), int64(a.Cols)) > 2"},
		{"true", "true"},
		{"Rows > -kBelow", "a.Rows > 1"},
		{"Rows > kBelow", "a.Rows > (-1)"},
		{"ceil(Rows, 2*kTile) <= 4", "(int64(a.Rows) + 15) / 16 <= 4"},
		{"- -Rows*Cols > 0", "-(-int64(a.Rows)) * int64(a.Cols) > 0"},
	}
	for _, c := range cases {
		e, err := s.Bool(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got := e.Go(); got != c.want {
			t.Errorf("%s: got %s, want %s", c.text, got, c.want)
		}
	}
}

func TestGrid(t *testing.T) {
	s := scope(t)
	cases := []struct{ text, want string }{
		{"Rows", "uint32(a.Rows)"},
		{"(W.Rows+15)/16", "uint32((int64(a.W.Rows) + 15) / 16)"},
		{"Count/max(1, Rows)", "uint32(a.Count / max(1, int64(a.Rows)))"},
		{"kTile*2", "16"},
		{"ceil(Rows, 64)*ceil(W.Rows, kTile*16)", "uint32((int64(a.Rows) + 63) / 64 * ((int64(a.W.Rows) + 127) / 128))"},
		{"ceil(Rows, max(1, Cols))", "uint32((int64(a.Rows) + (max(1, int64(a.Cols)) - 1)) / max(1, int64(a.Cols)))"},
		{"ceil(17, kTile)", "3"},
		{"-Rows", "uint32(-int64(a.Rows))"},
	}
	for _, c := range cases {
		e, err := s.Int(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got := e.GridGo(); got != c.want {
			t.Errorf("%s: got %s, want %s", c.text, got, c.want)
		}
	}
}

func TestMost(t *testing.T) {
	s := scope(t)
	for text, want := range map[string]int64{
		"12":                          12,
		"min(132, Rows)":              132,
		"min(Rows, (132))":            132,
		"min(Cols, min(7, Rows), 9)":  7,
		"4*min(62, (W.Rows+127)/128)": 248,
		"kTile*min(2, Rows)":          16,
		"Rows":                        0,
		"max(132, Rows)":              0,
		"min(Rows, Cols)":             0,
		"-4*min(62, Rows)":            0,
		"Rows*min(62, Rows)":          0,
		"min(62, Rows)+1":             0,
		"Rows*(1-min(1, Rows/2048))":  0,
	} {
		e, err := s.Int(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, limited := e.Most(); got != want || limited != (want != 0) {
			t.Errorf("%s: at most %d (%t), want %d", text, got, limited, want)
		}
	}
}

func TestRefused(t *testing.T) {
	s := scope(t)
	cases := []struct {
		text string
		bool bool
		want string
	}{
		{"", true, "does not parse"},
		{"Rows +", true, "does not parse"},
		{"Rows", true, "want true or false"},
		{"Rows > 1", false, "want an integer"},
		{"1.5", false, "want an integer"},
		{"Type", false, "is op.DType, want an integer"},
		{"Rows/Cols", false, "divides by what may be zero"},
		{"Rows%max(0, Cols)", false, "divides by what may be zero"},
		{"Rows/0", false, "division by zero"},
		{"Rows<<Cols", false, "shifts by what may be negative"},
		{"1<<70", false, "want an integer of 64 bits"},
		{"len(Rows)", false, "not allowed"},
		{"ceil(Rows)", false, "not allowed"},
		{"ceil(Rows, Cols)", false, "divides by what may be zero"},
		{"ceil(Rows, 0)", false, "division by zero"},
		{"ceil(Rows, max(1, ceil(Rows, 2)))", false, "rounds up by what is rounded up itself"},
		{"int32(Rows)", false, "not allowed"},
		{"Rows.Cols", false, `Rows has no field "Cols"`},
		{"W", false, "want an integer"},
		{"kWide", false, `"kWide" is no field`},
		{"&Rows", false, "not allowed"},
		{"func() bool { return true }()", true, "not allowed"},
		{"Rows == SchemeQ8_0", true, "mismatched types"},
		{strings.Repeat("(", 600) + "Rows" + strings.Repeat(")", 600), false, "expression of 1204 characters"},
	}
	for _, c := range cases {
		read := s.Int
		if c.bool {
			read = s.Bool
		}
		_, err := read(c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q: got error %v, want %q", c.text, err, c.want)
		}
	}
}

func TestTruth(t *testing.T) {
	s := scope(t)
	cases := []struct {
		text        string
		bf16, q8_0  Truth
		wantSchemes int
	}{
		{"Rows > 1", Unknown, Unknown, 0},
		{"W.Scheme == SchemeQ8_0", False, True, 1},
		{"SchemeQ8_0 != W.Scheme", True, False, 1},
		{"!(W.Scheme == SchemeQ8_0) && Rows > 1", Unknown, False, 1},
		{"W.Scheme == SchemeQ8_0 || W.Scheme == SchemeBF16", True, True, 2},
		{"W.Scheme == SchemeBF16 || exact", True, Unknown, 1},
		{"1 > 2", False, False, 0},
		{"Other.Scheme == SchemeQ8_0", Unknown, Unknown, 0}, // calls are told apart by the first
	}
	for _, c := range cases {
		e, err := s.Bool(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if bf16, q8_0 := e.Truth(1), e.Truth(2); bf16 != c.bf16 || q8_0 != c.q8_0 {
			t.Errorf("%s: got %v for bf16 and %v for q8_0, want %v and %v", c.text, bf16, q8_0, c.bf16, c.q8_0)
		}
		if got := len(e.Schemes()); got != c.wantSchemes {
			t.Errorf("%s: got %d schemes, want %d", c.text, got, c.wantSchemes)
		}
	}
}

func TestCovers(t *testing.T) {
	s := scope(t)
	cases := []struct {
		outer, inner string
		want         bool
	}{
		{"Rows <= 16", "Rows <= 4", true},
		{"Rows <= 4", "Rows <= 16", false},
		{"Rows <= 16", "4 >= Rows && exact", true},
		{"Rows <= 16 && exact", "Rows <= 4", false},
		{"Rows < 5", "Rows == 4", true},
		{"Rows > 1", "Rows >= 2", true},
		{"Rows >= 2", "Rows > 0", false},
		{"Rows > 1 && Rows < 9", "(Rows > 2) && Rows < 9", true},
		{"Rows*Cols < 9", "Rows * Cols < 8", true},
		{"exact", "vnni", false},
		{"exact", "vnni && exact", true},
		{"Rows != 3", "Rows != 3", true},
		{"true", "exact", true},
		{"exact", "true", false},
	}
	for _, c := range cases {
		outer, err := s.Bool(c.outer)
		inner, err2 := s.Bool(c.inner)
		if err := errors.Join(err, err2); err != nil {
			t.Errorf("%v", err)
			continue
		}
		if got := NewCover(nil, outer).Covers(NewCover(nil, inner)); got != c.want {
			t.Errorf("%s covers %s: got %v, want %v", c.outer, c.inner, got, c.want)
		}
	}
	eights, err := s.Bool("ceil(Rows, kTile) <= 4")
	fours, err2 := scopeWith(t, 4).Bool("ceil(Rows, kTile) <= 4")
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	if NewCover(nil, eights).Covers(NewCover(nil, fours)) {
		t.Error("ceil(Rows, kTile) <= 4: where kTile is 8 it covers the same where kTile is 4, want not known")
	}
	if option, err := s.Bool("exact"); err != nil || !NewCover([]string{"exact"}).Covers(NewCover(nil, option)) {
		t.Errorf("needs exact does not cover when exact (error %v)", err)
	}
	never, err := s.Bool("Rows < 2 && Rows > 2")
	if err != nil || !NewCover(nil, never).Empty() {
		t.Errorf("Rows < 2 && Rows > 2: got satisfiable (error %v), want empty", err)
	}
}

func FuzzExpression(f *testing.F) {
	for _, text := range []string{"Rows <= 4 && !exact", "(W.Rows+15)/16", "Rows/max(1, Cols)", "1<<70", "-(-Rows)", "min()", "'x'", "Rows<<63>>1%3"} {
		f.Add(text)
	}
	s := scope(f)
	f.Fuzz(func(t *testing.T, text string) {
		if e, err := s.Bool(text); err == nil {
			if _, err := parser.ParseExpr(e.Go()); err != nil {
				t.Errorf("%q gives %q: %v", text, e.Go(), err)
			}
			e.Truth(1)
			NewCover(nil, e).Covers(NewCover([]string{"x"}, e))
		}
		if e, err := s.Int(text); err == nil {
			if _, err := parser.ParseExpr(e.GridGo()); err != nil {
				t.Errorf("%q gives %q: %v", text, e.GridGo(), err)
			}
			e.Constant()
		}
	})
}
