package bench

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// file is runs of cases a, b, …, each with these microseconds.
func file(runs ...[]int) *File {
	f := &File{Machine: "m"}
	for _, times := range runs {
		r := Report{Target: "t", Ceiling: int64(1000 * len(f.Runs))}
		for i, us := range times {
			r.Results = append(r.Results, Result{Op: "Op", Case: string(rune('a' + i)), Bytes: 1000, Cold: Timing{Min: time.Duration(us) * time.Microsecond}})
		}
		f.Runs = append(f.Runs, Run{r})
	}
	return f
}

func TestCompare(t *testing.T) {
	cases := []struct {
		name      string
		old, new  *File
		geomean   float64
		worst     string
		regressed bool
	}{
		{"same", file([]int{100, 200}), file([]int{100, 200}), 1, "a", false},
		{"within the least noise", file([]int{100, 200}), file([]int{102, 200}), math.Sqrt(1.02), "a", false},
		{"one case slower", file([]int{100, 200}), file([]int{100, 220}), math.Sqrt(1.1), "b", true},
		{"noise explains it", file([]int{100, 200}, []int{100, 230}), file([]int{100, 220}), math.Sqrt(1.1), "b", false},
		{"all a little slower", file([]int{100, 100, 100, 100}), file([]int{102, 102, 103, 103}), 1.0249, "c", true},
		{"faster", file([]int{100, 200}), file([]int{50, 100}), 0.5, "a", false},
		{"the fastest run counts", file([]int{100}, []int{90}), file([]int{90}, []int{500}), 1, "a", false},
	}
	for _, c := range cases {
		got := Compare(c.old, c.new)
		if math.Abs(got.Geomean-c.geomean) > 1e-3 || got.Changes[0].New.Case != c.worst || got.Regressed() != c.regressed {
			t.Errorf("%s: got %.4f, worst %s, regressed %v, want %.4f, %s, %v", c.name, got.Geomean, got.Changes[0].New.Case, got.Regressed(), c.geomean, c.worst, c.regressed)
		}
	}
}

func TestCompareOtherCases(t *testing.T) {
	if got := Compare(file([]int{1, 2, 3}), file([]int{1})); got.Missing != 2 || got.Added != 0 || len(got.Changes) != 1 {
		t.Errorf("fewer: got %+v, want two missing", got)
	}
	if got := Compare(file(nil), file([]int{1})); got.Missing != 0 || got.Added != 1 || got.Regressed() {
		t.Errorf("nothing before: got %+v, want one added", got)
	}
}

func write(t *testing.T, text string) string {
	path := filepath.Join(t.TempDir(), "x.json")
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func FuzzReadRun(f *testing.F) {
	f.Add(`{"Target":"a","Results":[{"Op":"Linear","Case":"c","Cold":{"Median":2,"Min":1},"Bytes":9}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		run, err := ReadRun(strings.NewReader(text))
		if err != nil {
			return
		}
		file := &File{Runs: []Run{run}}
		for _, c := range file.Cases() {
			if c.Noise < 1 {
				t.Errorf("%s: noise %v", text, c.Noise)
			}
		}
		if c := Compare(file, file); c.Regressed() {
			t.Errorf("%s: slower than itself", text)
		}
	})
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.json")
	if err := file([]int{1, 2}, []int{3, 4}).Write(path); err != nil {
		t.Fatal(err)
	}
	got, err := Read(path)
	if err != nil || len(got.Runs) != 2 || got.Ceiling("t") != 1000 || got.Ceiling("other") != 0 {
		t.Errorf("got %+v, %v", got, err)
	}
	if c := got.Cases()[1]; c.Noise != 2 || c.BytesPerSecond() != 5e8 {
		t.Errorf("case b: got noise %v, %v bytes per second, want 2, 5e8", c.Noise, c.BytesPerSecond())
	}
	for _, text := range []string{`{`, `{"Version": 7}`, `{"Version": 1}`, `{"Target": "x"}`} {
		if _, err := Read(write(t, text)); err == nil {
			t.Errorf("%s: got no error", text)
		}
	}
	if _, err := ReadRun(strings.NewReader(`{"Target":"a"}{"Target":"b"}{`)); err == nil {
		t.Error("cut off: got no error")
	}
	if run, err := ReadRun(strings.NewReader(`{"Target":"a","Replayed":true}{"Target":"b"}`)); err != nil || len(run) != 2 {
		t.Errorf("two reports: got %v, %v", run, err)
	}
}
