// Package sdk puts the Go clients of OpenAI and Anthropic, unmodified, to a server that follows a script (scripts.json). The tests need
//
//	ATLAS_SCRIPTED where that server is, such as http://127.0.0.1:8001; without it they skip
//	ATLAS_KEY      a key of it
//	ATLAS_MODEL    the model that it serves
//	ATLAS_RESULTS  a file that gets a line for each check; without it there are none
package sdk

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// target is a server that follows a script.
type target struct{ url, key, model string }

func open(t *testing.T) target {
	t.Helper()
	s := target{strings.TrimRight(os.Getenv("ATLAS_SCRIPTED"), "/"), os.Getenv("ATLAS_KEY"), os.Getenv("ATLAS_MODEL")}
	if s.url == "" {
		t.Skip("set ATLAS_SCRIPTED to a running server (tools/scripted.sh starts one)")
	}
	return s
}

// check is one thing that a client does, and a row of what is reported.
func check(t *testing.T, client, feature, name string, f func(t *testing.T)) {
	t.Helper()
	verdict := "FAIL"
	if t.Run(feature+"/"+name, f) {
		verdict = "ok"
	}
	result(t, client, feature, name, verdict)
}

// version reports which module a client is.
func version(t *testing.T, client, module string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), module+" ")
	if !ok {
		t.Fatalf("go.mod does not name %s", module)
	}
	result(t, client, "version", module+" "+strings.Fields(rest)[0], "")
}

// result prints a line, and adds it to the results.
func result(t *testing.T, columns ...string) {
	t.Helper()
	line := strings.Join(columns, "\t")
	fmt.Println(line)
	path := os.Getenv("ATLAS_RESULTS")
	if path == "" {
		return
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := fmt.Fprintln(file, line); err != nil {
		t.Fatal(err)
	}
}

// running is how many requests the server works on.
func (s target) running(t *testing.T) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+s.key)
	got, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	lines := bufio.NewScanner(got.Body)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "vllm:num_requests_running") {
			return lines.Text()[strings.LastIndexByte(lines.Text(), ' ')+1:]
		}
	}
	t.Fatalf("/metrics answers %s without a count of requests", got.Status)
	return ""
}

// idle waits until the server works on nothing.
func (s target) idle(t *testing.T) {
	t.Helper()
	now := ""
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if now = s.running(t); now == "0" {
			return
		}
	}
	t.Errorf("a minute after the client left, %s requests still run", now)
}

// What the scripts write.
const (
	hello   = "Hello from Atlas: naïve café, 你好, 👩🏽‍💻."
	thought = "The user greets. I greet back."
	greeted = "Good day to you."
	city    = `São Paulo "SP" {}`
)
