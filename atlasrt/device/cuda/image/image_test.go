package image

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

func sample() *Image {
	return &Image{
		Units: []Unit{{"rmsnorm", []byte("first cubin")}, {"linear", bytes.Repeat([]byte{7}, 64)}, {"copy", []byte{0}}},
		Entries: []Entry{
			{Name: "atlas_rmsnorm", Unit: "rmsnorm", Block: [3]uint32{256, 1, 1}, Programmatic: true},
			{Name: "atlas_linear", Unit: "linear", Block: [3]uint32{128, 2, 1}, SharedBytes: 200 << 10, Cluster: [3]uint32{2, 1, 1}},
			{Name: "atlas_step", Unit: "linear", Block: [3]uint32{32, 1, 1}, Cooperative: true},
		},
	}
}

func encode(t testing.TB, i *Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := i.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReadGivesWhatWasWritten(t *testing.T) {
	cases := map[string]*Image{"three units": sample(), "nothing": {}}
	for name, want := range cases {
		file := encode(t, want)
		got, err := Read(file)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
		if again := encode(t, got); !bytes.Equal(again, file) {
			t.Errorf("%s: written again it differs: %q, want %q", name, again, file)
		}
	}
}

func TestUnitsAreAligned(t *testing.T) {
	file := encode(t, sample())
	for _, u := range sample().Units[:2] {
		if at := bytes.Index(file, u.Code); at < 0 || at%align != 0 {
			t.Errorf("unit %s lies at %d, want a multiple of %d", u.Name, at, align)
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	cases := map[string]struct {
		change func(*Image)
		want   string
	}{
		"unit twice":         {func(i *Image) { i.Units[1].Name = "rmsnorm" }, `names a unit "rmsnorm"`},
		"unit without name":  {func(i *Image) { i.Units[0].Name = "" }, `names a unit ""`},
		"empty unit":         {func(i *Image) { i.Units[0].Code = nil }, "unit rmsnorm of the kernel image is empty"},
		"kernel twice":       {func(i *Image) { i.Entries[1].Name = "atlas_step" }, `names a kernel "atlas_step"`},
		"kernel with spaces": {func(i *Image) { i.Entries[1].Name = "a b" }, `names a kernel "a b"`},
		"long name":          {func(i *Image) { i.Entries[1].Name = strings.Repeat("a", 257) }, "names a kernel"},
		"unknown unit":       {func(i *Image) { i.Entries[0].Unit = "norm" }, `is in unit "norm", which the kernel image has not`},
		"no threads":         {func(i *Image) { i.Entries[0].Block = [3]uint32{32, 0, 1} }, "a block has [32 0 1] threads"},
		"many threads":       {func(i *Image) { i.Entries[0].Block = [3]uint32{1 << 31, 1 << 31, 4} }, "at most 1024 in all"},
		"wide cluster":       {func(i *Image) { i.Entries[0].Cluster = [3]uint32{17, 1, 1} }, "a cluster has [17 1 1] blocks"},
		"flat cluster":       {func(i *Image) { i.Entries[0].Cluster = [3]uint32{2, 1, 0} }, "a cluster has [2 1 0] blocks"},
		"shared memory":      {func(i *Image) { i.Entries[0].SharedBytes = 2 << 20 }, "2097152 bytes of dynamic shared memory"},
	}
	for name, c := range cases {
		i := sample()
		c.change(i)
		if err := i.Write(&bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got error %v, want one with %q", name, err, c.want)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	whole := string(encode(t, sample()))
	cases := map[string]struct{ file, want string }{
		"empty":          {"", "no image of CUDA kernels"},
		"another format": {"\x7fELF", "no image of CUDA kernels"},
		"no second line": {magic + "{", "ends in its list of contents"},
		"no JSON":        {magic + "{\n", "damaged list of contents"},
		"unknown key":    {magic + `{"unit":[]}` + "\n", "unknown field"},
		"two values":     {magic + "{}{}\n", "something behind its list of contents"},
		"cut short":      {whole[:len(whole)-1], `ends in unit "copy"`},
		"tail":           {whole + "x", "1 bytes behind its last unit"},
		"negative size":  {strings.Replace(whole, `"bytes":11`, `"bytes":-1`, 1), `ends in unit "rmsnorm"`},
		"huge size":      {strings.Replace(whole, `"bytes":11`, `"bytes":9223372036854775807`, 1), `ends in unit "rmsnorm"`},
		"no threads":     {strings.Replace(whole, `[256,1,1]`, `[0,  1,1]`, 1), "a block has [0 1 1] threads"},
	}
	for name, c := range cases {
		if got, err := Read([]byte(c.file)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %+v and error %v, want an error with %q", name, got, err, c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(encode(f, sample()))
	f.Add(encode(f, &Image{}))
	f.Add([]byte(magic + `{"units":[{"name":"a","bytes":1}],"entries":[{"name":"k","unit":"a","block":[1,1,1]}]}` + "\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		i, err := Read(file)
		if err != nil {
			return
		}
		again, err := Read(encode(t, i))
		if err != nil || !reflect.DeepEqual(again, i) {
			t.Errorf("%q: read %+v, written and read again %+v (error %v)", file, i, again, err)
		}
	})
}
