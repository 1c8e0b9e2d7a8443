package sessions

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// Every session is played against a server that follows a script. The variables are those of package sdk's tests.
func TestT075Sessions(t *testing.T) {
	server := strings.TrimRight(os.Getenv("ATLAS_SCRIPTED"), "/")
	if server == "" {
		t.Skip("set ATLAS_SCRIPTED to a running server (tools/scripted.sh starts one)")
	}
	paths, err := filepath.Glob("*/*.json")
	if err != nil {
		t.Fatal(err)
	}
	played := 0
	for _, path := range paths {
		client, name := filepath.Split(strings.TrimSuffix(path, ".json"))
		if strings.HasPrefix(name, "tools") {
			continue // a list that bodies name
		}
		played++
		s, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.Join(append(s.Rows, filepath.Base(client), name), " "), func(t *testing.T) {
			saved := map[string]string{}
			for i := range s.Turns {
				turn := &s.Turns[i]
				a, err := play(t.Context(), server, filepath.Dir(path), turn, saved)
				if err != nil {
					t.Fatalf("%s: %v", turn.Name, err)
				}
				wrong := turn.Want.Check(a)
				if turn.Leave > 0 && !idle(t, server) {
					wrong = append(wrong, "the request goes on without its client")
				}
				for _, why := range wrong {
					t.Errorf("%s: %s\n%s", turn.Name, why, ends(a.Text))
				}
				report(t, filepath.Base(client), turn, name, len(wrong) == 0)
				for key, path := range turn.Save {
					saved[key] = gjson.Get(a.JSON, path).String()
				}
			}
		})
	}
	if played == 0 {
		t.Error("there are no sessions")
	}
}

// ends are the beginning and the end of a text.
func ends(text string) string {
	const most = 800
	if len(text) <= 2*most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "\n…\n" + strings.ToValidUTF8(text[len(text)-most:], "")
}

// play sends a turn.
func play(ctx context.Context, server, folder string, turn *Turn, saved map[string]string) (*Answer, error) {
	body, err := turn.Expand(folder, saved)
	if err != nil {
		return nil, err
	}
	method := turn.Method
	if method == "" {
		method = http.MethodPost
	}
	path := turn.Path
	for name, text := range saved {
		path = strings.ReplaceAll(path, "${"+name+"}", text)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, server+path, strings.NewReader(string(body)))
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for name, value := range turn.Headers {
		request.Header.Set(name, strings.ReplaceAll(value, "${key}", os.Getenv("ATLAS_KEY")))
	}
	got, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer got.Body.Close()
	if turn.Leave == 0 {
		text, err := io.ReadAll(got.Body)
		return NewAnswer(got.StatusCode, got.Header, string(text)), err
	}
	var text strings.Builder
	lines := bufio.NewScanner(got.Body)
	for n := 0; n < turn.Leave && lines.Scan(); {
		fmt.Fprintln(&text, lines.Text())
		if strings.HasPrefix(lines.Text(), "data: ") {
			n++
		}
	}
	return NewAnswer(got.StatusCode, got.Header, text.String()), lines.Err()
}

// idle waits until the server works on nothing.
func idle(t *testing.T, server string) bool {
	t.Helper()
	metrics := Turn{Method: http.MethodGet, Path: "/metrics", Headers: map[string]string{"Authorization": "Bearer ${key}"}}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		a, err := play(t.Context(), server, "", &metrics, nil)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(a.Text, "\n") {
			if strings.HasPrefix(line, "vllm:num_requests_running") && strings.HasSuffix(line, " 0") {
				return true
			}
		}
	}
	return false
}

// report adds a line for a turn to the file that ATLAS_RESULTS names.
func report(t *testing.T, client string, turn *Turn, session string, ok bool) {
	t.Helper()
	feature, verdict := turn.Feature, "FAIL"
	if feature == "" {
		feature = "chat"
	}
	if ok {
		verdict = "ok"
	}
	line := strings.Join([]string{client + " (session)", feature, session + ": " + turn.Name, verdict}, "\t")
	fmt.Println(line)
	if path := os.Getenv("ATLAS_RESULTS"); path != "" {
		file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if _, err := fmt.Fprintln(file, line); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCheck(t *testing.T) {
	stream := http.Header{"Content-Type": {"text/event-stream"}}
	answer := NewAnswer(200, stream, "event: a\ndata: {\"n\":1,\"t\":\"x\"}\n\nevent: ping\ndata: {}\n\nevent: a\ndata: {\"t\":\"y\"}\n\ndata: [DONE]\n\n")
	cases := []struct {
		want  string
		wrong int
	}{
		{`{"events": ["a"], "done": true, "joined": {"t": "xy"}, "json": {"0.n": 1, "0.t": {"$match": "^x$"}, "1.n": {"$absent": true}}}`, 0},
		{`{"status": 400, "events": ["b"], "joined": {"t": "x"}, "lacks": ["DONE"]}`, 4},
		{`{"json": {"0.n": 2, "0.t": {"$match": "y"}, "0.n ": {"$more": 1}, "9": null}, "headers": {"x-a": "b"}}`, 5},
	}
	for _, c := range cases {
		turn, err := Read(write(t, `{"turns": [{"want": `+c.want+`}]}`))
		if err != nil {
			t.Fatal(err)
		}
		if wrong := turn.Turns[0].Want.Check(answer); len(wrong) != c.wrong {
			t.Errorf("%s: got %q, want %d", c.want, wrong, c.wrong)
		}
	}
}

func TestExpand(t *testing.T) {
	folder := filepath.Dir(write(t, `["t"]`))
	turn := Turn{Body: []byte(`{"a": {"$file": "file.json"}, "b": ["${id}-", {"$repeat": ["x", 3]}]}`)}
	got, err := turn.Expand(folder, map[string]string{"id": "7"})
	if want := `{"a":["t"],"b":["7-","xxx"]}`; string(got) != want || err != nil {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.json")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
