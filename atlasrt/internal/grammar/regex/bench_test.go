package regex

import "testing"

const uuid = `^[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`

func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		if _, err := NewSet().Parse(uuid, Syntax{}); err != nil {
			b.Fatal(err)
		}
	}
}

// Derivatives that were made before.
func BenchmarkDerive(b *testing.B) {
	s := NewSet()
	r := s.Text()
	for b.Loop() {
		r = s.Derive(r, 'x')
	}
}

// A state made at each byte.
func BenchmarkNewStates(b *testing.B) {
	for b.Loop() {
		s := NewSet()
		r, err := s.Parse(`^.{0,1000}$`, Syntax{})
		if err != nil {
			b.Fatal(err)
		}
		for range 1000 {
			r = s.Derive(r, 'x')
		}
	}
}
