package optest

import (
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/device/host"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/oracle"
)

// fewProducts is how many floating-point operations a case may take in a test that goes through all of them.
const fewProducts = 1 << 16

// Every case, also those that short runs leave out, has buffers of sizes that its tags allow, contents for each, and a scheme that the
// oracle knows. Where it takes few operations, the oracle agrees with itself, in f32: TestOraclePasses has both types.
func TestEveryCaseIsSetUp(t *testing.T) {
	for _, act := range []op.DType{op.F32, op.BF16} {
		t.Run(act.String(), func(t *testing.T) {
			t.Parallel()
			r, err := newReference(act, 1)
			if err != nil {
				t.Fatal(err)
			}
			j, err := newJudge(&Target{Device: host.New(0), Set: oracle.New(act), Act: act, Exact: true, Scratch: 1}, Options{Seed: 1}, r)
			if err != nil {
				t.Fatal(err)
			}
			list := append(cases(Options{}, true), batches(Options{})...)
			for _, c := range conversations(Options{}) {
				list = append(list, c.whole)
			}
			for _, h := range histories(Options{}) {
				list = append(list, h.whole)
			}
			computed := 0
			for _, c := range list {
				products, err := setUp(j, c)
				if err != nil {
					t.Errorf("%s %s: %v", c.Op, c.Name, err)
					continue
				}
				if products > fewProducts || act != op.F32 {
					continue
				}
				computed++
				if got := j.judge(c); got.Status != Pass {
					t.Error(got)
				}
			}
			t.Logf("%d cases, %d of them computed", len(list), computed)
		})
	}
}

// setUp lists a case's buffers, and returns the operations that its products take.
func setUp(j *judge, c *Case) (products int64, err error) {
	list, err := j.target.fields(c)
	if err != nil {
		return 0, err
	}
	for _, name := range c.matrices() {
		if w := c.matrix(name); j.target.set.PackedBytes(w.Scheme, w.Rows, w.Cols) == 0 {
			return 0, errNoScheme
		}
	}
	_, products = c.work(list)
	return products, c.check(list)
}

// Cases that give too much, too little or nothing are found before anything runs.
func TestCheckFindsWhatIsNotGiven(t *testing.T) {
	logits := func() *Case { return of("", op.Logits{W: matrix(op.SchemeBF16, 5, 32), Rows: 3, InRows: 4}) }
	short, numbers, right := logits(), logits(), logits()
	set(short, "Index", []int32{0, 1})
	set(numbers, "Index", []int32{0, 1, 2})
	numbers.numbers["In"] = make([]float64, 4*32-1)
	set(right, "Index", []int32{0, 1, 2})
	for _, s := range []struct {
		name string
		c    *Case
		ok   bool
	}{{"nothing", logits(), false}, {"too few rows", short, false}, {"a number too few", numbers, false}, {"all", right, true}} {
		list, err := s.c.fields(op.F32, func(op.Weight) int64 { return 320 })
		if err != nil {
			t.Fatal(err)
		}
		if err := s.c.check(list); (err == nil) != s.ok {
			t.Errorf("%s given: got %v, want an error: %t", s.name, err, !s.ok)
		}
	}
}
