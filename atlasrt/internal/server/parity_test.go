package server

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/api/anthropic"
	"github.com/atlas-inference/atlas/atlasrt/internal/api/openai"
	"github.com/atlas-inference/atlas/atlasrt/internal/api/responses"
	"github.com/atlas-inference/atlas/internal/await"
)

// sized is a request of a dialect with a text, which becomes two tokens more than bytes but in a dialect without conversations.
func sized(dialect int, text string) string {
	switch dialect {
	case inText:
		return `{"prompt":"` + text + `"`
	case inResponses:
		return `{"input":"` + text + `"`
	}
	return `{"messages":[{"role":"user","content":"` + text + `"}],"max_tokens":9`
}

// around is how many tokens a dialect's prompt has beside its text.
func around(dialect int) int {
	if dialect == inText {
		return 0
	}
	return 2
}

// A prompt that leaves room for one token is answered, and longer ones are refused with their length, in words that clients match.
func TestT074ContextsOfDialects(t *testing.T) {
	r := newRig(t, answering, nil)
	fields := [4]string{"messages", "prompt", "input", ""}
	for i, d := range dialects(t) {
		for _, tokens := range []int{maxContext - 1, maxContext, maxContext + 1, 2 * maxContext, maxContext + 1_000_000} {
			for _, path := range d.paths {
				if !answersAt(path) {
					continue
				}
				for _, stream := range []bool{false, true} {
					got := r.post(path, sized(i, strings.Repeat("x", tokens-around(i)))+fmt.Sprintf(`,"stream":%v}`, stream))
					if tokens < maxContext {
						if got.status != 200 {
							t.Errorf("%s, %d tokens: %d %s", path, tokens, got.status, got.body)
						}
						continue
					}
					count := fmt.Sprintf("the request has %d tokens", tokens)
					if i == inMessages {
						count = fmt.Sprintf("prompt is too long: %d tokens > %d maximum", tokens, maxContext-1)
					}
					if tokens > 2*maxContext { // which are not counted to the end
						count = "at least"
					}
					d := object(t, got.body)
					exact := strings.Contains(at(d, "error", "message"), count) && at(d, "error", "type") == "invalid_request_error"
					if i != inMessages {
						exact = exact && at(d, "error", "code") == "context_length_exceeded" && strings.Contains(got.body, fmt.Sprintf("maximum context length is %d tokens", maxContext))
					}
					if problem := refusedBy(t, i, got, 400, fields[i]); problem != "" || !exact {
						t.Errorf("%s, %d tokens: %d %s\nwant %q; %s", path, tokens, got.status, got.body, count, problem)
					}
				}
			}
		}
	}
}

// allocated is how many bytes a call allocates.
func allocated(call func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// To decode a long text or a long conversation takes memory in step with its length, and so does the refusal of its prompt.
func TestT027LongRequests(t *testing.T) {
	of := func(d api.Dialect) func([]byte) error {
		return func(body []byte) error { _, err := d.Decode(body, api.DefaultLimits()); return err }
	}
	decoders := [4]func([]byte) error{inChat: of(openai.Chat{}), inText: of(openai.Text{}), inMessages: of(anthropic.Messages{}), inResponses: func(body []byte) error {
		r, err := responses.Decode(body, api.DefaultLimits())
		if err != nil {
			return err
		}
		return r.Converse(nil, nil, api.DefaultLimits())
	}}
	const user, fields = `{"role":"user","content":"u"}`, `"max_tokens":9,"messages":`
	many := func(dialect, n int) string {
		switch dialect {
		case inText:
			return `{"prompt":` + repeat(n/100, `"u"`)
		case inResponses:
			return `{"input":` + repeat(n, user)
		}
		return `{` + fields + repeat(n, user)
	}
	r := newRig(t, answering, nil)
	r.engine.seen = make(chan engineRequest, 8)
	for i, d := range dialects(t) {
		decode := func(body string) uint64 {
			text := []byte(body)
			return allocated(func() {
				if err := decoders[i](text); err != nil {
					t.Errorf("%s, %d bytes: %v", d.name, len(text), err)
				}
			})
		}
		const most = 30 << 20
		if half, whole := decode(sized(i, strings.Repeat("x", most/2))+"}"), decode(sized(i, strings.Repeat("x", most))+"}"); whole > half*9/4 || whole > 8*most {
			t.Errorf("%s: a text of %d bytes takes %d bytes, one of %d takes %d", d.name, most/2, half, most, whole)
		}
		if half, whole := decode(many(i, 5_000)+"}"), decode(many(i, 10_000)+"}"); whole > half*5/2 {
			t.Errorf("%s: 5,000 turns take %d bytes, 10,000 take %d", d.name, half, whole)
		}
		for _, path := range d.paths {
			if !answersAt(path) {
				continue
			}
			if got := r.post(path, sized(i, strings.Repeat("x", most))+"}"); got.status != 400 || !strings.Contains(got.body, "at least") || len(r.engine.seen) > 0 {
				t.Errorf("%s, a text of %d bytes: %d %s, %d reached the engine", path, most, got.status, got.body, len(r.engine.seen))
			}
		}
	}
}

// Tokens that the logits have no place for are refused, though the tokenizer knows them; those that only the logits have are no text.
func TestT037TokensBeyondTheLogits(t *testing.T) {
	r := newRig(t, answering, func(c *Config) { c.Model.Generator.Vocab = vocabulary - 1 })
	r.engine.seen = make(chan engineRequest, 8)
	const beyond = vocabulary - 1
	cases := []struct{ path, fields, field string }{
		{"/v1/chat/completions", `"messages":[{"role":"user","content":"u"}],"logit_bias":{"%d":-100}`, "logit_bias"},
		{"/v1/chat/completions", `"messages":[{"role":"user","content":"u"}],"stop_token_ids":[1,%d]`, "stop_token_ids"},
		{"/v1/completions", `"prompt":"u","logit_bias":{"%d":1}`, "logit_bias"}, {"/v1/completions", `"prompt":"u","stop_token_ids":[%d]`, "stop_token_ids"}, {"/v1/completions", `"prompt":[[97],[%d]]`, "prompt"},
	}
	for _, c := range cases {
		got := r.post(c.path, "{"+fmt.Sprintf(c.fields, beyond)+"}")
		if problem := refusedBy(t, inChat, got, 400, c.field); problem != "" || len(r.engine.seen) > 0 {
			t.Errorf("%s %s: %d %s\n%s", c.path, c.fields, got.status, got.body, problem)
		}
		if got := r.post(c.path, "{"+fmt.Sprintf(c.fields, beyond-1)+"}"); got.status != 200 {
			t.Errorf("%s %s of the last token: %d %s", c.path, c.fields, got.status, got.body)
		}
		for len(r.engine.seen) > 0 {
			<-r.engine.seen
		}
	}
	if tok := byteTokenizer(t); tok.Decode([]int32{97, vocabulary, 98}, false) != "ab" || len(tok.TokenBytes(vocabulary)) != 0 {
		t.Errorf("a token that is none is shown as %q", tok.Decode([]int32{97, vocabulary, 98}, false))
	}
}

// Many tokens with many likeliest ones are numbers that JSON has, in every form.
func TestT035ManyLogProbs(t *testing.T) {
	const tokens = 8000
	r := newRig(t, func(engineRequest) reply { return reply{text: strings.Repeat("x", tokens)} }, func(c *Config) { c.Model.Generator.MaxContext = 20_000 })
	count := func(v any) (n int) {
		for _, token := range list(v) {
			if p, ok := token.(map[string]any)["logprob"].(float64); !ok || p > 0 || p < -9999 || len(list(token, "top_logprobs")) != 20 {
				t.Fatalf("a token of %v", token)
			}
			n++
		}
		return n
	}
	n := 0
	documents, _ := events(t, r.post("/v1/chat/completions", `{"messages":[{"role":"user","content":"u"}],"stream":true,"logprobs":true,"top_logprobs":20}`).body)
	for _, d := range documents {
		v, _ := find(d, "choices", 0, "logprobs", "content")
		n += count(v)
	}
	whole, _ := find(object(t, r.post("/v1/chat/completions", `{"messages":[{"role":"user","content":"u"}],"logprobs":true,"top_logprobs":20}`).body), "choices", 0, "logprobs", "content")
	other, _ := find(object(t, r.post("/v1/responses", `{"input":"u","include":["message.output_text.logprobs"],"top_logprobs":20}`).body), "output", 0, "content", 0, "logprobs")
	text := object(t, r.post("/v1/completions", `{"prompt":"u","max_tokens":8001,"logprobs":5}`).body)
	for _, p := range list(text, "choices", 0, "logprobs", "token_logprobs") {
		if v, ok := p.(float64); !ok || v > 0 || v < -9999 {
			t.Fatalf("a log-probability of %v", p)
		}
	}
	if a, b, c := count(whole), count(other), len(list(text, "choices", 0, "logprobs", "token_logprobs")); n < tokens || a < tokens || b < tokens || c < tokens {
		t.Errorf("a stream has %d tokens, a chat %d, a response %d, a completion %d, want %d each", n, a, b, c, tokens)
	}
}

// What is new and what a cache held are together the prompt, which is what a count says, in every dialect that has one.
func TestT069PromptsOfDialects(t *testing.T) {
	r := talking(t, answers("ok"), nil)
	random := rand.New(rand.NewPCG(6, 9))
	for range 100 {
		text := strings.Repeat("wörld ", 1+random.IntN(40))
		for i, d := range dialects(t) {
			body := sized(i, text) + "}"
			usage := object(t, r.post(d.path, body).body)["usage"]
			shown := tokensOf(object(t, r.post(d.path+"/render", body).body), "count")
			total, cached := 0, 3
			switch i {
			case inResponses:
				total, cached = tokensOf(usage, "input_tokens"), tokensOf(usage.(map[string]any)["input_tokens_details"], "cached_tokens")
				if got := r.post("/v1/responses/input_tokens", body).body; tokensOf(object(t, got), "input_tokens") != total {
					t.Fatalf("T068 %s: counted %s, charged %d", body, got, total)
				}
			case inMessages:
				cached = tokensOf(usage, "cache_read_input_tokens")
				total = tokensOf(usage, "input_tokens") + cached + tokensOf(usage, "cache_creation_input_tokens")
				if got := r.post("/v1/messages/count_tokens", body).body; tokensOf(object(t, got), "input_tokens") != total {
					t.Fatalf("T068 %s: counted %s, charged %d", body, got, total)
				}
			default:
				total, cached = tokensOf(usage, "prompt_tokens"), tokensOf(usage.(map[string]any)["prompt_tokens_details"], "cached_tokens")
				if tokensOf(usage, "total_tokens") != total+tokensOf(usage, "completion_tokens") {
					t.Fatalf("%s: %v", d.name, usage)
				}
			}
			if total != shown || cached != 3 {
				t.Fatalf("%s, %q: %d tokens are charged, %d of a cache, in %v; the prompt has %d, 3 of a cache", d.name, text, total, cached, usage, shown)
			}
		}
	}
}

// A client that stops reading is given up, and so is one that leaves, whatever dialect its stream is in.
func TestT064ClientsOfDialects(t *testing.T) {
	r := newRig(t, func(engineRequest) reply { return reply{text: strings.Repeat("x", 1<<17)} }, func(c *Config) {
		c.Limits.WriteTime = 50 * time.Millisecond
		c.Model.Generator.MaxContext = 1 << 18
	})
	for i, d := range dialects(t) {
		body := strings.NewReplacer(`"max_tokens":100`, `"max_tokens":200000`).Replace(d.usual) + `,"stream":true}`
		if i == inText {
			body = strings.TrimSuffix(body, "}") + `,"max_tokens":200000}`
		}
		conn := r.dial(strings.Replace(rawHead, "/v1/chat/completions", d.path, 1) + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body))
		await.Until(t, d.name+": the write deadline is counted", func() bool {
			return r.metric(`atlasrt_cancelled_total{cause="write_stalled"`) == fmt.Sprint(i+1)
		})
		await.Until(t, d.name+": the request is cancelled", func() bool { return r.engine.running.Load() == 0 })
		conn.Close()
	}
	r = newRig(t, func(engineRequest) reply { return reply{text: "x", hangs: true} }, nil)
	for i, d := range dialects(t) {
		for k, stream := range []bool{true, false} {
			body := d.usual + fmt.Sprintf(`,"stream":%v}`, stream)
			conn := r.dial(strings.Replace(rawHead, "/v1/chat/completions", d.path, 1) + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body))
			await.Until(t, d.name+": the request runs", func() bool { return r.engine.running.Load() == 1 })
			conn.Close()
			await.Until(t, d.name+": the request is cancelled (T065)", func() bool { return r.engine.running.Load() == 0 })
			await.Until(t, d.name+": that is counted", func() bool {
				return r.metric(`atlasrt_cancelled_total{cause="client_gone"`) == fmt.Sprint(2*i+k+1)
			})
		}
	}
}
