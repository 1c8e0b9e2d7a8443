package inspect

import (
	"encoding/binary"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func fixture(t testing.TB) []byte {
	t.Helper()
	code, err := os.ReadFile("testdata/fixture.cubin")
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// What the assembler says of the fixture with -Xptxas -v.
func TestCubin(t *testing.T) {
	got, err := Cubin(fixture(t))
	if err != nil {
		t.Fatal(err)
	}
	want := []Kernel{
		{Name: "atlas_linear_0", Parameters: 80, Registers: 8, MaxThreads: 64},
		{Name: "atlas_linear_1", Parameters: 80, Registers: 10, MaxThreads: 256},
		{Name: "atlas_norm", Parameters: 40, Registers: 10, MaxThreads: 128},
		{Name: "atlas_shared", Parameters: 40, Registers: 10, Shared: 4096, MaxThreads: 128},
		{Name: "atlas_small", Parameters: 40, Registers: 10, MaxThreads: 64},
		{Name: "atlas_stack", Parameters: 40, Registers: 10, Stack: 104, MaxThreads: 128},
		{Name: "atlas_unbounded", Parameters: 40, Registers: 10},
		{Name: "atlas_wide", Parameters: 48, Registers: 10, MaxThreads: 128},
	}
	for i := range got {
		if got[i].Code < 64 || got[i].Code > 4096 {
			t.Errorf("%s: got %d bytes of code", got[i].Name, got[i].Code)
		}
		got[i].Code = 0
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

func TestCubinRefuses(t *testing.T) {
	whole := fixture(t)
	sections := binary.LittleEndian.Uint64(whole[0x28:]) // e_shoff; a header is 64 bytes
	change := func(at uint64, bytes ...byte) []byte {
		code := slices.Clone(whole)
		copy(code[at:], bytes)
		return code
	}
	cases := []struct {
		what string
		code []byte
		want string
	}{
		{"nothing", nil, "EOF"},
		{"no ELF", []byte("hello, this is text and no ELF file, whatever it is called"), "bad magic"},
		{"half a file", whole[:len(whole)/2], ""},
		{"another machine", change(0x12, 62, 0), "it is for machine EM_X86_64"},
		{"compressed section", change(sections+2*64+9, 8), "is compressed"},
		{"huge section", change(sections+2*64+0x20, 0, 0, 0, 0, 0, 0, 0, 0x7f), "no compiler writes that"},
	}
	for _, c := range cases {
		if got, err := Cubin(c.code); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %+v, error %v, want one with %q", c.what, got, err, c.want)
		}
	}
}

func TestAttributes(t *testing.T) {
	cases := []struct {
		what string
		data []byte
		want string // attributes and values; an error's text
	}{
		{"none", nil, ""},
		{"in place", []byte{3, 0x19, 40, 0}, "19 [40 0]; "},
		{"sized", []byte{4, 0x11, 3, 0, 7, 8, 9, 1, 2, 0, 0}, "11 [7 8 9]; 02 [0 0]; "},
		{"empty", []byte{4, 0x11, 0, 0}, "11 []; "},
		{"cut in its head", []byte{3, 0x19, 40}, "it ends inside a record"},
		{"cut in its value", []byte{4, 0x11, 3, 0, 7, 8}, "it ends inside a record"},
		{"cut in its length", []byte{4, 0x11, 3}, "it ends inside a record"},
	}
	for _, c := range cases {
		got := ""
		err := attributes(c.data, func(attribute byte, value []byte) { got += fmt.Sprintf("%02x %v; ", attribute, value) })
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.what, got, c.want)
		}
	}
}

// FuzzCubin: no file, however damaged, does worse than an error, and what is read has sizes that a sum cannot overflow.
func FuzzCubin(f *testing.F) {
	whole := fixture(f)
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte("\x7fELF"))
	for at := 0x100; at < len(whole); at += len(whole) / 16 {
		damaged := slices.Clone(whole)
		damaged[at] ^= 0xff
		f.Add(damaged)
	}
	f.Fuzz(func(t *testing.T, code []byte) {
		kernels, err := Cubin(code)
		if err != nil {
			return
		}
		for _, k := range kernels {
			for _, n := range []int64{k.Code, k.Parameters, k.Registers, k.Stack, k.Shared, k.MaxThreads} {
				if n < 0 || n > 1<<60 {
					t.Errorf("kernel %+v has a size out of bounds", k)
				}
			}
		}
	})
}

func FuzzAttributes(f *testing.F) {
	f.Add([]byte{3, 0x19, 40, 0, 4, 0x11, 3, 0, 7, 8, 9})
	f.Add([]byte{4, 0x11, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		bytes := 0
		_ = attributes(data, func(_ byte, value []byte) { bytes += 2 + len(value) })
		if bytes > len(data) {
			t.Errorf("%v: %d bytes of records in %d", data, bytes, len(data))
		}
	})
}
