package conformance

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
)

// streams is how many clients the soak test runs at a time.
const streams = 64

// Many clients that ask, read, and leave when they like, for a while. In the end the server holds nothing of theirs.
func TestSoak(t *testing.T) {
	seconds, err := strconv.Atoi(os.Getenv("ATLAS_SOAK"))
	if err != nil {
		t.Skip("set ATLAS_SOAK to the seconds to run")
	}
	s := open(t)
	before := s.metrics(t)
	over := time.Now().Add(time.Duration(seconds) * time.Second) // from then on nobody asks again, and all read to their end
	var answered, left, failed atomic.Int64
	var clients sync.WaitGroup
	for i := range streams {
		clients.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 1))
			for first := true; first || time.Now().Before(over); first = false {
				done, err := s.visit(t.Context(), random)
				switch {
				case err != nil:
					failed.Add(1)
					t.Errorf("client %d: %v", i, err)
					return
				case done:
					answered.Add(1)
				default:
					left.Add(1)
				}
			}
		})
	}
	clients.Wait()
	t.Logf("%d answers read to their end, %d left, %d failed", answered.Load(), left.Load(), failed.Load())
	if answered.Load() == 0 || left.Load() == 0 {
		t.Error("the clients did not do both, read to the end and leave")
	}
	s.settle(t, before)
	after := s.metrics(t)
	t.Logf("goroutines %v before, %v after; heap %.1f MiB before, %.1f MiB after", before["go_goroutines"], after["go_goroutines"],
		before["go_memstats_heap_inuse_bytes"]/(1<<20), after["go_memstats_heap_inuse_bytes"]/(1<<20))
	if more := after["go_memstats_heap_inuse_bytes"] - before["go_memstats_heap_inuse_bytes"]; more > 64<<20 {
		t.Errorf("the heap grew by %.1f MiB", more/(1<<20))
	}
}

// visit asks one question and reads the answer, to its end or not.
func (s target) visit(ctx context.Context, random *rand.Rand) (done bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	question := s.question(int64(1 + random.IntN(48)))
	question.Messages = append(question.Messages, openai.UserMessage(strings.Repeat(fmt.Sprint("topic ", random.IntN(1000), " "), random.IntN(40))))
	question.Temperature = openai.Float(1)
	leave := -1
	if random.IntN(3) == 0 {
		leave = random.IntN(20)
	}
	if leave == 0 {
		time.AfterFunc(time.Duration(random.IntN(50))*time.Millisecond, cancel)
	}
	stream := s.client.Chat.Completions.NewStreaming(ctx, question)
	defer stream.Close()
	for n := 1; stream.Next(); n++ {
		if n == leave {
			return false, nil
		}
	}
	if ctx.Err() != nil {
		return false, nil
	}
	return stream.Err() == nil, stream.Err()
}

// metrics are the gauges that must come back to where they were.
func (s target) metrics(t *testing.T) map[string]float64 {
	t.Helper()
	request, err := http.NewRequestWithContext(s.ctx, http.MethodGet, s.url+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("ATLAS_KEY"))
	got, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	values := map[string]float64{}
	lines := bufio.NewScanner(got.Body)
	for lines.Scan() {
		name, _, _ := strings.Cut(strings.Fields(lines.Text() + " ")[0], "{")
		switch name {
		case "vllm:num_requests_running", "vllm:num_requests_waiting", "atlasrt_blocks_used", "atlasrt_blocks_total",
			"go_goroutines", "go_memstats_heap_inuse_bytes":
			value := lines.Text()[strings.LastIndexByte(lines.Text(), ' ')+1:]
			if values[name], err = strconv.ParseFloat(value, 64); err != nil {
				t.Fatalf("%s: %v", lines.Text(), err)
			}
		}
	}
	if len(values) != 6 {
		t.Fatalf("/metrics answers %s and has %v", got.Status, values)
	}
	return values
}

// idleGoroutines is how many more goroutines a server may have that was busy: connections that clients keep open.
const idleGoroutines = 2*streams + 16

// settle waits until the gauges are what they were, and the goroutines of requests have ended.
func (s target) settle(t *testing.T, before map[string]float64) {
	t.Helper()
	var now map[string]float64
	for range 100 {
		now = s.metrics(t)
		same := now["go_goroutines"] <= before["go_goroutines"]+idleGoroutines
		for _, name := range []string{"vllm:num_requests_running", "vllm:num_requests_waiting", "atlasrt_blocks_used", "atlasrt_blocks_total"} {
			same = same && now[name] == before[name]
		}
		if same {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("10 s after the last request: %v, before: %v", now, before)
}
