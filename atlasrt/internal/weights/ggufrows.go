package weights

import (
	"fmt"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/mapping"
)

// rows chooses rows of a tensor: of every so many the first to first+each-1.
type rows struct{ first, each, every int }

// namedRows are rows that have a HuggingFace name of their own.
type namedRows struct {
	name string
	rows []rows
}

// inOneStretch reports whether chosen rows of a tensor follow each other.
func inOneStretch(chosen []rows, shape []int64) bool {
	return len(chosen) == 1 && int64(chosen[0].every) == shape[0]
}

// stretch gives rows that follow each other as they lie in the file.
func stretch(t Tensor, r rows) []byte {
	row := len(t.Data) / int(t.Shape[0])
	end := (r.first + r.each) * row
	return t.Data[r.first*row : end : end]
}

// gather copies the chosen rows of a tensor, one choice after the other.
func gather(t Tensor, chosen []rows) ([]byte, error) {
	count := int(t.Shape[0])
	row := len(t.Data) / count
	var out []byte
	err := mapping.Guard(func() error {
		for _, r := range chosen {
			for start := r.first; start < count; start += r.every {
				out = append(out, t.Data[start*row:(start+r.each)*row]...)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("tensor %v: %w", t.Info, err)
	}
	return out, nil
}

// unpermute puts the rows of a Q or K projection, weight or bias, into HuggingFace's order. GGUF files of the llama
// architecture hold the two halves of a head interleaved, so that rotary pairs are neighbours: row 2i+s of a head is row
// s·half+i of HuggingFace's. Whole rows move, so blocks stay as they are.
func unpermute(t Tensor, heads int) ([]byte, error) {
	rows := 0
	if len(t.Shape) > 0 {
		rows = int(t.Shape[0])
	}
	if rows == 0 || rows%(2*heads) != 0 {
		return nil, fmt.Errorf("tensor %v: its rows are not divided into pairs by %d heads", t.Info, heads)
	}
	head, row := rows/heads, len(t.Data)/rows
	out := make([]byte, len(t.Data))
	err := mapping.Guard(func() error {
		for to := range rows {
			inHead := to % head
			from := to - inHead + inHead%(head/2)*2 + inHead/(head/2)
			copy(out[to*row:(to+1)*row], t.Data[from*row:])
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("tensor %v: %w", t.Info, err)
	}
	return out, nil
}
