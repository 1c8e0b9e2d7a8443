package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/chat"
	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
	"github.com/atlas-inference/atlas/atlasrt/internal/tokenizer"
	"github.com/atlas-inference/atlas/internal/await"
)

// Tokens of the tests' vocabulary: one for each byte, and some that control.
const (
	endToken       = 256
	userToken      = 257
	assistantToken = 258
	vocabulary     = 259
	maxContext     = 200
)

// byteTokenizer has a token for each byte, so that every code point beyond ASCII spans tokens.
func byteTokenizer(t testing.TB) *tokenizer.Tokenizer {
	t.Helper()
	return cutting(t, map[string]any{"type": "ByteLevel", "add_prefix_space": false, "use_regex": false})
}

// cutting is a byteTokenizer with another pre-tokenizer.
func cutting(t testing.TB, pre map[string]any) *tokenizer.Tokenizer {
	t.Helper()
	vocab := map[string]int{}
	other := rune(256)
	for b := range 256 {
		r := rune(b)
		if !(b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae) { // as byte-level tokenizers spell bytes that do not print
			r, other = other, other+1
		}
		vocab[string(r)] = b
	}
	added := []map[string]any{}
	for id, content := range map[int]string{endToken: "<|end|>", userToken: "<|user|>", assistantToken: "<|assistant|>"} {
		added = append(added, map[string]any{"id": id, "content": content, "special": true})
	}
	file, err := json.Marshal(map[string]any{
		"added_tokens": added, "normalizer": nil, "post_processor": nil,
		"pre_tokenizer": pre,
		"decoder":       map[string]any{"type": "ByteLevel"},
		"model":         map[string]any{"type": "BPE", "vocab": vocab, "merges": []string{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.FromJSON(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// engineRequest keeps scripts short.
type engineRequest = engine.Request

// reply is what the fake engine answers to a request.
type reply struct {
	text   string
	err    error         // in place of what follows the text
	refuse error         // in place of everything
	step   time.Duration // before each token
	wait   time.Duration // before the first
	hangs  bool          // nothing follows the text: the answer ends when it is cancelled
	drafts engine.Drafts // behind each token so far
}

// fakeEngine answers requests from a script. It is no scheduler: each request has its own goroutine.
type fakeEngine struct {
	reply func(engine.Request) reply

	running  atomic.Int64
	draining atomic.Bool
	broken   atomic.Pointer[error]
	beat     atomic.Pointer[time.Time]
	group    sync.WaitGroup
	seen     chan engine.Request // where set: what was submitted
}

func (f *fakeEngine) Submit(ctx context.Context, requests ...engine.Request) (*engine.Inbox, error) {
	if f.draining.Load() {
		return nil, engine.ErrDraining
	}
	answers := make([]reply, len(requests))
	for i, r := range requests {
		if answers[i] = f.reply(r); answers[i].refuse != nil {
			return nil, answers[i].refuse
		}
	}
	stops := make([]context.CancelFunc, len(requests))
	inbox := engine.NewInbox(len(requests), func(request int) { stops[request]() })
	for i, r := range requests {
		if f.seen != nil {
			f.seen <- r
		}
		var own context.Context
		own, stops[i] = context.WithCancel(ctx)
		f.running.Add(1)
		f.group.Go(func() {
			defer f.running.Add(-1)
			f.answer(own, r, answers[i], func(e engine.Event) {
				e.Request = i
				inbox.Put(e)
			})
		})
	}
	return inbox, nil
}

func (f *fakeEngine) answer(ctx context.Context, r engine.Request, a reply, put func(engine.Event)) {
	pause := func(d time.Duration) bool {
		if d == 0 {
			return ctx.Err() == nil
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(d):
			return true
		}
	}
	if !pause(a.wait) {
		put(engine.Event{Token: -1, Finish: engine.FinishCancelled})
		return
	}
	tokens := []int32{}
	for _, b := range []byte(a.text) {
		tokens = append(tokens, int32(b))
	}
	if a.err == nil && !a.hangs {
		tokens = append(tokens, endToken)
	}
	for i, token := range tokens {
		if !pause(a.step) {
			put(engine.Event{Token: -1, Finish: engine.FinishCancelled})
			return
		}
		e := engine.Event{Token: token, Drafts: a.drafts}
		if i == 0 {
			e.Cached = 3
			if r.PromptLogProbs {
				for _, p := range r.Prompt[1:] {
					e.Prompt = append(e.Prompt, fakeLogProb(p, r.LogProbs))
				}
			}
		}
		if r.LogProbs >= 0 {
			l := fakeLogProb(token, r.LogProbs)
			e.LogProb = &l
		}
		switch {
		case token == endToken:
			e.Finish = engine.FinishStop
		case i+1 == r.MaxTokens:
			e.Finish = engine.FinishLength
		}
		put(e)
		if e.Finish != "" {
			return
		}
	}
	if a.hangs {
		<-ctx.Done()
		put(engine.Event{Token: -1, Finish: engine.FinishCancelled})
		return
	}
	put(engine.Event{Token: -1, Finish: engine.FinishError, Err: a.err})
}

func fakeLogProb(token int32, top int) sample.TokenLogProb {
	l := sample.TokenLogProb{Token: token, LogProb: -0.25}
	for i := range top {
		l.Top = append(l.Top, sample.Choice{Token: (token + int32(i)) % endToken, LogProb: -0.25 - float32(i)})
	}
	return l
}

func (f *fakeEngine) Stats() engine.Stats {
	n := int(f.running.Load())
	return engine.Stats{Running: n, BlocksUsed: n, BlocksFree: 10 - n, BlocksTotal: 10}
}

func (f *fakeEngine) Heartbeat() time.Time {
	if beat := f.beat.Load(); beat != nil {
		return *beat
	}
	return time.Now()
}

func (f *fakeEngine) Err() error {
	if err := f.broken.Load(); err != nil {
		return *err
	}
	return nil
}

func (f *fakeEngine) Drain(ctx context.Context) error {
	f.draining.Store(true)
	for f.running.Load() > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

// fakeTemplate writes roles as control tokens and contents as data.
type fakeTemplate struct{ tokenizer *tokenizer.Tokenizer }

func (f fakeTemplate) Prompt(ctx context.Context, r *chat.Request, _ time.Time, limit int) (p completion.Prompt, err error) {
	for _, m := range r.Messages {
		if m.Content.Text == "raise" {
			return p, errors.New("the template does not like this")
		}
		if m.Content.Text == "panic" {
			panic("a template broke")
		}
		p.Tokens = append(p.Tokens, userToken)
		tokens, err := f.tokenizer.EncodeWithin(ctx, m.Content.Text, false, limit)
		if err != nil {
			return p, err
		}
		p.Tokens = append(p.Tokens, tokens...)
	}
	p.Tokens = append(p.Tokens, assistantToken)
	return p, nil
}

// rig is a server over a fake engine, and its network.
type rig struct {
	t       testing.TB
	engine  *fakeEngine
	server  *Server
	network network
	client  *http.Client
	url     string
}

// answering is the usual script: a short text with characters that span tokens.
func answering(engine.Request) reply { return reply{text: "Hello 👩🏽‍💻 wörld"} }

func newRig(t testing.TB, script func(engine.Request) reply, change func(*Config)) *rig {
	t.Helper()
	before := runtime.NumGoroutine()
	tok := byteTokenizer(t)
	fake := &fakeEngine{reply: script}
	c := Config{
		Model: Model{Name: "tiny", Aliases: []string{"org/alias"}, Engine: fake, Template: fakeTemplate{tok},
			Generator: &completion.Generator{Engine: fake, Tokenizer: tok, End: []int32{endToken}, MaxContext: maxContext, Vocab: vocabulary, Defaults: sample.Defaults()}},
	}
	if change != nil {
		change(&c)
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, engine: fake, server: s, network: newNetwork()}
	r.client = client(r.network)
	gate, stop := gated(t, r, nil)
	gate.Open(s)
	t.Cleanup(func() {
		r.client.CloseIdleConnections()
		if err := stop(); err != nil {
			t.Error(err)
		}
		fake.group.Wait()
		await.Goroutines(t, before)
	})
	return r
}

// response is an answer that was read to its end.
type response struct {
	status int
	header http.Header
	body   string
}

// do sends a request; headers come in pairs.
func (r *rig) do(method, path, body string, headers ...string) response {
	r.t.Helper()
	request, err := http.NewRequest(method, r.url+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			request.Host = headers[i+1]
		}
	}
	got, err := r.client.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return response{got.StatusCode, got.Header, string(text)}
}

func (r *rig) post(path, body string) response {
	r.t.Helper()
	return r.do(http.MethodPost, path, body)
}

// metric is the value of a sample, by the beginning of its line. No connection is needed to ask for it, and so no limit meets that.
func (r *rig) metric(prefix string) string {
	r.t.Helper()
	answer, request := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/metrics", nil)
	request.Host = "localhost"
	r.server.ServeHTTP(answer, request)
	for line := range strings.SplitSeq(answer.Body.String(), "\n") {
		if strings.HasPrefix(line, prefix) {
			return line[strings.LastIndex(line, " ")+1:]
		}
	}
	return "none"
}

// events are the JSON documents of a stream, and whether it ended as it should.
func events(t testing.TB, stream string) (documents []map[string]any, done bool) {
	t.Helper()
	for event := range strings.SplitSeq(stream, "\n\n") {
		data, ok := strings.CutPrefix(event, "data: ")
		switch {
		case event == "" || strings.HasPrefix(event, ":"):
		case !ok || done:
			t.Fatalf("event %q in a stream that is done: %v", event, done)
		case data == "[DONE]":
			done = true
		default:
			documents = append(documents, object(t, data))
		}
	}
	return documents, done
}
