package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/server"
	"github.com/atlas-inference/atlas/atlasrt/op"
)

// tinyShape is a model of vocabulary tokens.
func tinyShape(t *testing.T, vocabulary string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "config.json")
	text := `{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": 32,
		"intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 32, "vocab_size": ` + vocabulary + `,
		"max_position_embeddings": 256, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A shape without weights is served: before it is loaded requests get 503, then answers in text. The lines "ready" and "listening" come
// in this order, when requests are taken.
func TestServeDummy(t *testing.T) {
	c, _, err := parseLine(t, "serve", "--load-dummy", tinyShape(t, "300"), "--max-sequences", "2", "--memory", "64MiB", "--port", "0")
	if err != nil {
		t.Fatal(err)
	}
	var written bytes.Buffer
	config, err := c.Serve.config(slog.New(slog.NewJSONHandler(&written, nil)))
	if err != nil {
		t.Fatal(err)
	}
	gate, err := server.NewGate(config.Limits, config.Log)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := server.Listen(t.Context(), config.Addr)
	if err != nil {
		t.Fatal(err)
	}
	config.Addr = listening(c.Serve.Host, listener.Addr())
	ctx, end := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- gate.Serve(ctx, listener) }()

	request := `{"model": "dummy", "messages": [{"role": "user", "content": "Größe <|im_end|>"}], "max_tokens": 8, "seed": 1}`
	if status, body := post(t, config.Addr, "/v1/chat/completions", request); status != http.StatusServiceUnavailable || !strings.Contains(body, "model_not_ready") {
		t.Errorf("before loading: got %d %s, want 503 model_not_ready", status, body)
	}
	prepare := func(ctx context.Context) (*instance.Prepared, error) { return c.Serve.prepareOn(ctx, onOracle(op.F32)) }
	e, err := c.Serve.open(ctx, prepare, end, gate, config)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var answer struct {
		Choices []struct {
			Message struct{ Content string }
			Finish  string `json:"finish_reason"`
		}
		Usage struct {
			Prompt int `json:"prompt_tokens"`
		}
	}
	status, body := post(t, config.Addr, "/v1/chat/completions", request)
	if err := json.Unmarshal([]byte(body), &answer); err != nil || status != http.StatusOK || len(answer.Choices) != 1 {
		t.Fatalf("got %d %s, want an answer", status, body)
	}
	// <|im_start|>user\nGröße <|im_end|><|im_end|>\n<|im_start|>assistant\n, where each byte but those of the template's control tokens is a token.
	if want := 1 + len("user\nGröße <|im_end|>") + 1 + 1 + 1 + len("assistant\n"); answer.Usage.Prompt != want {
		t.Errorf("the prompt has %d tokens, want %d", answer.Usage.Prompt, want)
	}
	if got := answer.Choices[0]; got.Message.Content == "" && got.Finish != "stop" {
		t.Errorf("got %+v, want text or an end token", got)
	}
	end()
	if err := <-served; err != nil {
		t.Error(err)
	}
	_, rest, found := strings.Cut(written.String(), `"msg":"ready"`)
	line, rest, _ := strings.Cut(rest, "\n")
	var ready struct {
		Address string
		Seconds float64
	}
	if err := json.Unmarshal([]byte("{"+strings.TrimPrefix(line, ",")), &ready); err != nil || !found || ready.Address != "http://"+config.Addr || !strings.Contains(line, `"threads":`) || !strings.Contains(line, `"seconds":`) {
		t.Errorf("got a line of %+v, %v, want that it is ready at %s with numbers as numbers:\n%s", ready, err, config.Addr, &written)
	}
	if !strings.Contains(rest, `"msg":"listening"`) {
		t.Errorf("the log lacks a line that it is listening behind the one that it is ready:\n%s", &written)
	}
}

func post(t *testing.T, address, path, body string) (int, string) {
	t.Helper()
	r, err := http.Post("http://"+address+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(text)
}

// Any vocabulary that holds the bytes and the control tokens reads and writes text.
func TestTextOfDummies(t *testing.T) {
	cases := []struct{ vocabulary, wrong string }{
		{"259", ""}, {"300", ""}, {"151936", ""},
		{"258", "text needs 259"}, {"1", "text needs 259"}, {"3000000", "at most 2097152"}, {"0", "vocab_size is 0"}, {`"many"`, "vocab_size"},
	}
	for _, c := range cases {
		checkpoint, err := modelFlags{LoadDummy: tinyShape(t, c.vocabulary), DummyType: "bf16"}.openText(t.Context(), online)
		var text *instance.Text
		if err == nil {
			text, err = instance.OpenText(checkpoint)
		}
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("vocabulary of %s: got %v, want %q", c.vocabulary, err, c.wrong)
			}
			continue
		}
		if err != nil {
			t.Errorf("vocabulary of %s: %v", c.vocabulary, err)
			continue
		}
		const said = "Ünïcode\x00\t and  spaces\n日本"
		ids := text.Tokenizer.Encode(said, true)
		if got := text.Tokenizer.Decode(ids, false); len(ids) != len(said) || got != said {
			t.Errorf("vocabulary of %s: %q becomes %d tokens, %q", c.vocabulary, said, len(ids), got)
		}
		for id := range int32(text.Tokenizer.VocabSize()) {
			if got := text.Tokenizer.Decode([]int32{id}, false); got == "" {
				t.Errorf("vocabulary of %s: token %d is no text", c.vocabulary, id)
			}
		}
		if len(text.End) == 0 || text.Template == nil {
			t.Errorf("vocabulary of %s: end tokens %v, template %v", c.vocabulary, text.End, text.Template)
		}
	}
}

func TestServedNames(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "Tiny-2.5-0.1B-Instruct")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		args []string
		want string
	}{
		{nil, "smollm2"},
		{[]string{"--model", folder}, "Tiny-2.5-0.1B-Instruct"},
		{[]string{"--model", "acme/Tiny-2.5"}, "acme/Tiny-2.5"},
		{[]string{"--model", folder, "--name", "a,b"}, "a b"},
		{[]string{"--load-dummy", "config.json"}, "dummy"},
	}
	for _, c := range cases {
		got, _, err := parseLine(t, append([]string{"serve"}, c.args...)...)
		if err != nil {
			t.Fatal(err)
		}
		if names := strings.Join(got.Serve.names(), " "); names != c.want {
			t.Errorf("%v: got %s, want %s", c.args, names, c.want)
		}
	}
}

// The port comes before the model: a taken one is the error, whatever the model, and a model that cannot be opened gives the port back.
func TestServeTakesThePortFirst(t *testing.T) {
	const host = "127.9.1.1" // of this machine, and where no other test listens: nobody takes the port while it is free
	taken, err := net.Listen("tcp", host+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, err := net.SplitHostPort(taken.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	shape := filepath.Join(t.TempDir(), "none.json")
	run := func() error {
		c, _, err := parseLine(t, "serve", "--load-dummy", shape, "--host", host, "--port", port)
		if err != nil {
			t.Fatal(err)
		}
		return c.Serve.Run()
	}
	if err := run(); err == nil || !strings.Contains(err.Error(), "address already in use") || !strings.Contains(err.Error(), "--port 0") {
		t.Errorf("port %s is taken: got %v, want an error that says so", port, err)
	}
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := run(); err == nil || strings.Contains(err.Error(), "address already in use") {
			t.Errorf("no model: got %v, want an error of the model", err)
		}
	}
}

// Whoever stops a server before its model is loaded gets the error that main ends with code 3 for.
func TestServeStopsWhileLoading(t *testing.T) {
	c, _, err := parseLine(t, "serve", "--load-dummy", tinyShape(t, "300"), "--max-sequences", "2", "--memory", "64MiB")
	if err != nil {
		t.Fatal(err)
	}
	config, err := c.Serve.config(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	gate, err := server.NewGate(config.Limits, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	prepare := func(ctx context.Context) (*instance.Prepared, error) {
		defer stop()
		return c.Serve.prepareOn(ctx, onOracle(op.F32))
	}
	if _, err := c.Serve.open(ctx, prepare, stop, gate, config); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}
