package manifest

import (
	"reflect"
	"testing"

	"github.com/atlas-inference/atlas/atlasc/internal/diag"
)

// An instance reads as what it was written from; values stand in the place of parameters.
func TestInstance(t *testing.T) {
	cases := []string{
		"[[kernel]]\nop='Linear'\nname='a'\nbody='b.h'\ninst='f'\ngrid=['Rows', '(W.Rows+15)/16']\nneeds=['wide']\nchoose='tile'\ncost='3*Rows'\norder='o'\nconst={kB='{teams}', kA='x y'}\n",
		"[[kernel]]\nop='Linear'\nname='a'\nbody='b.h'\nscratch='Rows*4'\n[[kernel.launch]]\ninst='f'\ngrid=['1']\nblock=['128']\ncluster=['2', '1']\nserial=true\nmax_registers=64\n" +
			"tiles=[{field='In', rows='Rows', cols='W.Cols', box=['64', '64']}]\n[[kernel.launch]]\ninst='g'\ngrid=['1']\nshared='1024'\nl1=true\n",
	}
	for _, text := range cases {
		var diags diag.List
		want := Read("want.toml", text, Parameters{values: map[string]string{"teams": "2"}}, &diags).Kernels[0]
		written := want.Instance("other", `Rows == 1 && "x" == "y"`, want.Choose)
		got := Read("got.toml", written, Parameters{}, &diags).Kernels[0]
		if err := diags.Err(); err != nil {
			t.Fatalf("%s\n%v", written, err)
		}
		want.Name, want.When = "other", `Rows == 1 && "x" == "y"`
		want.place, got.place = place{}, place{}
		for i := range want.Launch {
			want.Launch[i].place, got.Launch[i].place = place{}, place{}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s\ngot  %+v\nwant %+v", written, got, want)
		}
	}
}
