package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/completion"
	"github.com/atlas-inference/atlas/atlasrt/internal/option"
	"github.com/atlas-inference/atlas/atlasrt/internal/sample"
)

const vocab = 1000

// body is a chat request with further fields.
func body(more string) string {
	return `{"model":"m","messages":[{"role":"user","content":"hi"}]` + more + `}`
}

// decoded is a request that was decoded and held against a model, or why it is refused.
type decoded struct {
	*api.Request
	err error
}

// decode decodes a request, for a model with usual defaults.
func decode(d api.Dialect, text string) decoded {
	r, err := d.Decode([]byte(text), api.DefaultLimits())
	if err == nil {
		err = r.Check(&completion.Generator{Vocab: vocab, Defaults: sample.Defaults()})
	}
	if bad, ok := errors.AsType[*option.Error](err); ok {
		err = api.InvalidOption(bad, d)
	}
	return decoded{r, err}
}

// refusal is a body, the field that is blamed, and the code.
type refusal struct{ body, param, code string }

// Bodies that are refused.
func TestChatRefuses(t *testing.T) {
	many := func(n int, item string) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }
	biases := make([]string, 1025)
	for i := range biases {
		biases[i] = fmt.Sprintf(`"%d":1`, i)
	}
	const valid, unsupported, none = "invalid_value", "unsupported_parameter", ""
	rows := []struct {
		name  string
		cases []refusal
	}{
		{"T019 no object", []refusal{
			{``, "", none}, {`null`, "", none}, {`[]`, "", none}, {`"x"`, "", none}, {`{"model":"m"`, "", none}, {body("") + "x", "", none},
		}},
		{"T020 depth and size", []refusal{
			{strings.Repeat("[", 100_000), "", none},
			{strings.Repeat(`{"a":`, 65) + "1" + strings.Repeat("}", 65), "", none},
			{`{"a":[` + many(250_001, "1") + `]}`, "", none},
		}},
		{"T021 duplicate keys", []refusal{
			{body(`,"model":"m"`), "", none},
			{body(`,"mod\u0065l":"m"`), "", none},
		}},
		{"T022 bytes that are no text", []refusal{
			{"{\"model\":\"\xff\"}", "", none},
		}},
		{"T023 numbers that are none", []refusal{
			{body(`,"temperature":NaN`), "", none}, {body(`,"seed":1.5`), "seed", valid}, {body(`,"seed":9223372036854775808`), "seed", valid}, {body(`,"max_tokens":"5"`), "max_tokens", valid}, {body(`,"temperature":1e999`), "temperature", valid},
		}},
		{"T044 model", []refusal{
			{`{"model":1,"messages":[]}`, "model", valid},
		}},
		{"T025 messages", []refusal{
			{`{"model":"m"}`, "messages", valid}, {`{"model":"m","messages":[]}`, "messages", valid},
			{`{"model":"m","messages":"hi"}`, "messages", valid}, {`{"model":"m","messages":[null]}`, "messages[0]", valid},
			{`{"model":"m","messages":[{"role":"god","content":""}]}`, "messages[0].role", valid},
			{`{"model":"m","messages":[{"content":""}]}`, "messages[0].role", valid},
			{`{"model":"m","messages":[{"role":"user","content":7}]}`, "messages[0].content", valid}, {`{"model":"m","messages":[{"role":"user"}]}`, "messages[0].content", valid},
			{`{"model":"m","messages":[{"role":"user","content":[7]}]}`, "messages[0].content[0]", valid}, {`{"model":"m","messages":[{"role":"user","content":[{"text":"x"}]}]}`, "messages[0].content[0].type", valid},
			{`{"model":"m","messages":[{"role":"user","content":[{"type":"text"}]}]}`, "messages[0].content[0].text", valid},
			{`{"model":"m","messages":[{"role":"assistant","tool_calls":5}]}`, "messages[0].tool_calls", valid}, {`{"model":"m","messages":[{"role":"assistant","tool_calls":[{}]}]}`, "messages[0].tool_calls[0].function", valid},
			{`{"model":"m","messages":[{"role":"assistant","tool_calls":[{"function":{}}]}]}`, "messages[0].tool_calls[0].function.name", valid},
			{`{"model":"m","messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":7}}]}]}`, "messages[0].tool_calls[0].function.arguments", valid},
			{body(`,"continue_final_message":true,"add_generation_prompt":true`), "continue_final_message", valid}, {body(`,"continue_final_message":1`), "continue_final_message", valid},
			{`{"model":"m","messages":[{"role":"user","content":null}]}`, "messages[0].content", valid},
			{`{"model":"m","messages":[{"role":"assistant","content":null}]}`, "messages[0].content", valid},
			{`{"model":"m","messages":[{"role":"tool","content":"1"}]}`, "messages[0].tool_call_id", valid},
			{`{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]}`, "messages[0].content[0].type", unsupported},
			{`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":1}]}]}`, "messages[0].content[0].text", valid},
		}},
		{"T027 many messages", []refusal{
			{`{"model":"m","messages":[` + many(100_000, `{"role":"user","content":""}`) + `]}`, "", none}, // of too many values
			{`{"model":"m","messages":[` + many(10_001, `{"role":"user","content":""}`) + `]}`, "messages", valid},
		}},
		{"T030 choices", []refusal{
			{body(`,"n":0`), "n", valid}, {body(`,"n":-1`), "n", valid}, {body(`,"n":9`), "n", valid}, {body(`,"n":129`), "n", valid}, {body(`,"n":2147483648`), "n", valid}, {body(`,"n":1000000000`), "n", valid},
		}},
		{"other names", []refusal{
			{body(`,"repeat_penalty":1.1,"repetition_penalty":1.2`), "repeat_penalty", valid}, {body(`,"n_predict":5,"max_tokens":6`), "n_predict", valid}, {body(`,"n_predict":0`), "n_predict", valid},
		}},
		{"fields of other routes", []refusal{
			{body(`,"system":"s"`), "system", unsupported}, {body(`,"output_config":{"format":{}}`), "output_config", unsupported}, {body(`,"instructions":"s"`), "instructions", unsupported},
			{body(`,"input":"x"`), "input", unsupported}, {body(`,"previous_response_id":"resp_1"`), "previous_response_id", unsupported}, {body(`,"prompt":"x"`), "prompt", unsupported},
		}},
		{"T031 best_of", []refusal{
			{body(`,"n":2,"best_of":1`), "best_of", valid}, {body(`,"best_of":2`), "best_of", unsupported},
		}},
		{"T032 max_tokens", []refusal{
			{body(`,"max_tokens":0`), "max_tokens", valid}, {body(`,"max_tokens":-1`), "max_tokens", valid},
			{body(`,"max_completion_tokens":0,"max_tokens":5`), "max_completion_tokens", valid}, {body(`,"max_tokens":5,"min_tokens":6`), "min_tokens", valid},
		}},
		{"T033 negative numbers", []refusal{
			{body(`,"top_k":-2`), "top_k", valid}, {body(`,"min_tokens":-1`), "min_tokens", valid}, {body(`,"repeat_last_n":-2`), "repeat_last_n", valid},
		}},
		{"T034 logprobs", []refusal{
			{body(`,"logprobs":true,"top_logprobs":21`), "top_logprobs", valid}, {body(`,"top_logprobs":1`), "top_logprobs", valid}, {body(`,"logprobs":1`), "logprobs", valid},
		}},
		{"T036 logit_bias", []refusal{
			{body(`,"logit_bias":{"x":1}`), "logit_bias", valid}, {body(`,"logit_bias":{"01":1}`), "logit_bias", valid}, {body(`,"logit_bias":{"-1":1}`), "logit_bias", valid},
			{body(`,"logit_bias":{"1000":1}`), "logit_bias", valid}, {body(`,"logit_bias":{"1":101}`), "logit_bias", valid}, {body(`,"logit_bias":{"1":"a"}`), "logit_bias", valid},
			{body(`,"logit_bias":{` + strings.Join(biases, ",") + `}`), "logit_bias", valid}, {body(`,"logit_bias":[]`), "logit_bias", valid},
		}},
		{"T039 stop", []refusal{
			{body(`,"stop":["1","2","3","4","5"]`), "stop", valid}, {body(`,"stop":""`), "stop", valid}, {body(`,"stop":[""]`), "stop", valid}, {body(`,"stop":[1]`), "stop", valid},
			{body(`,"stop":"` + strings.Repeat("x", 1<<20) + `"`), "stop", valid}, {body(`,"stop_token_ids":[1.5]`), "stop_token_ids", valid},
			{body(`,"stop_token_ids":[` + many(65, "1") + `]`), "stop_token_ids", valid},
		}},
		{"T037 tokens beyond the logits", []refusal{
			{body(`,"stop_token_ids":[1000]`), "stop_token_ids", valid}, {body(`,"logit_bias":{"1000":1}`), "logit_bias", valid}, {body(`,"bad_words_ids":[[1,1000]]`), "bad_words_ids", valid},
			{body(`,"banned_tokens":[1000]`), "banned_tokens", valid}, {body(`,"custom_token_bans":"7,-1"`), "custom_token_bans", valid}, {body(`,"allowed_token_ids":[1000]`), "allowed_token_ids", valid}, {body(`,"allowed_token_ids":[-1]`), "allowed_token_ids", valid},
		}},
		{"streams and templates", []refusal{
			{body(`,"stream":1`), "stream", valid}, {body(`,"stream_options":{"include_usage":true}`), "stream_options", valid},
			{body(`,"stream":true,"stream_options":{"include_usage":1}`), "stream_options.include_usage", valid},
			{body(`,"stream":true,"stream_options":{"include_obfuscation":true}`), "stream_options.include_obfuscation", unsupported},
			{body(`,"reasoning_effort":"huge"`), "reasoning_effort", valid}, {body(`,"cache_salt":""`), "cache_salt", valid},
			{body(`,"chat_template_kwargs":{"messages":[]}`), "chat_template_kwargs", unsupported}, {body(`,"chat_template_kwargs":{"thinking":1}`), "chat_template_kwargs.thinking", valid},
		}},
		{"what is not honoured", []refusal{
			{body(`,"modalities":["text","audio"]`), "modalities", unsupported},
			{body(`,"audio":{}`), "audio", unsupported},
			{body(`,"suffix":"x"`), "suffix", unsupported}, {body(`,"banned_strings":["x"]`), "banned_strings", unsupported},
		}},
		{"T045 tensors", []refusal{
			{body(`,"prompt_embeds":"AA=="`), "prompt_embeds", unsupported}, {body(`,"image_embeds":[]`), "image_embeds", unsupported}, {body(`,"input_embeds":[[0.5]]`), "input_embeds", unsupported},
		}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			for _, c := range row.cases {
				err := decode(Chat{}, c.body).err
				e, ok := errors.AsType[*api.Error](err)
				if !ok {
					t.Errorf("%.120s: got %+v, want 400 for %q with code %q", c.body, err, c.param, c.code)
					continue
				}
				status, _, body := Chat{}.Problem(e)
				got := errorOf(t, body)
				if status != 400 || got.Param != c.param || got.Code != c.code || got.Message == "" || len(got.Message) > 400 {
					t.Errorf("%.120s: got %d %s, want 400 for %q with code %q", c.body, status, body, c.param, c.code)
				}
			}
		})
	}
}

// errorBody is what a client reads of an error; what is null is empty.
type errorBody struct{ Message, Type, Param, Code string }

func errorOf(t *testing.T, body []byte) errorBody {
	t.Helper()
	var b struct{ Error errorBody }
	if err := json.Unmarshal(body, &b); err != nil {
		t.Errorf("%s: %v", body, err)
	}
	return b.Error
}

// Fields that are null, harmless, or not known.
func TestT024ChatAccepts(t *testing.T) {
	cases := []struct {
		more    string
		unknown int
	}{
		{``, 0},
		{`,"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"none"`, 0}, {`,"functions":[{"name":"f"}],"function_call":"none"`, 0}, {`,"tool_choice":"auto"`, 0},
		{`,"continue_final_message":true,"add_generation_prompt":false`, 0}, {`,"continue_final_message":false,"add_generation_prompt":true`, 0},
		{`,"repeat_penalty":1.1,"repetition_penalty":1.1,"repeat_last_n":-1`, 0}, {`,"repeat_last_n":64,"penalize_nl":false`, 0}, {`,"n_predict":-1`, 0}, {`,"n_predict":7,"max_tokens":7`, 0},
		{`,"temperature":null,"n":null,"stop":null,"logit_bias":null,"tools":null,"response_format":null,"stream_options":null,"max_tokens":null`, 0},
		{`,"tools":[],"tool_choice":"none","parallel_tool_calls":true,"response_format":{"type":"text"},"modalities":["text"]`, 0},
		{`,"user":"u","metadata":{"a":"b"},"store":false,"service_tier":"auto","safety_identifier":"s","prompt_cache_key":"k","prompt_cache_retention":"24h","verbosity":"low","prediction":null`, 0},
		{`,"system":"","instructions":null,"input":[],"output_config":{}`, 0},
		{`,"foo":1,"Temperature":7,"MAX_TOKENS":-1`, 3},
		{`,"temperature":0,"top_p":1,"min_p":0,"top_k":-1,"seed":-9223372036854775808`, 0},
		{`,"stop":"👋","stop_token_ids":[999],"best_of":1,"ignore_eos":true,"skip_special_tokens":false`, 0},
		{`,"chat_template_kwargs":{"enable_thinking":false,"thinking":true,"reasoning_effort":"low"},"reasoning_effort":"none"`, 0},
		{`,"stop":[],"logprobs":false,"top_logprobs":0`, 0},
	}
	for _, c := range cases {
		r := decode(Chat{}, body(c.more))
		if r.err != nil || r.Unknown != c.unknown {
			t.Errorf("%s: %v, %+v; want %d unknown fields", c.more, r.err, r.Request, c.unknown)
		}
	}
}

func TestT022PartsBecomeText(t *testing.T) {
	r := decode(Chat{}, `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b \ud800\u0000"}]}]}`)
	if r.err != nil || r.Chat.Messages[0].Content.Text != "a\nb \ufffd\x00" || r.Chat.Messages[0].Content.Parts != nil {
		t.Errorf("got %+v, %v", r.Request, r.err)
	}
}

// Prompts of completions.
func TestT026TextRequests(t *testing.T) {
	cases := []struct{ fields, param, want string }{
		{`"prompt":"hi"`, "", "[{hi []}]"},
		{`"prompt":["a","b"]`, "", "[{a []} {b []}]"},
		{`"prompt":[1,2]`, "", "[{ [1 2]}]"},
		{`"prompt":[[1],[2,3]]`, "", "[{ [1]} { [2 3]}]"},
		{`"prompt":"x","max_tokens":0,"echo":true,"logprobs":5`, "", "[{x []}]"},
		{`"prompt":""`, "prompt", ""}, {`"prompt":[]`, "prompt", ""}, {`"prompt":[[]]`, "prompt", ""}, {`"prompt":[""]`, "prompt", ""},
		{`"prompt":null`, "prompt", ""}, {`"suffix":""`, "prompt", ""}, {`"prompt":[1,"a"]`, "prompt", ""}, {`"prompt":[1000]`, "prompt", ""}, {`"prompt":[true]`, "prompt", ""},
		{`"prompt":"x","logprobs":6`, "logprobs", ""}, {`"prompt":"x","max_tokens":-1`, "max_tokens", ""}, {`"prompt":"x","suffix":"y"`, "suffix", ""},
		{`"prompt":"x","think":true`, "think", ""}, {`"prompt":"x","thinking_budget":9`, "thinking_budget", ""}, {`"prompt":"x","response_format":{"type":"odd"}`, "response_format.type", ""},
		{`"prompt":"x","tools":[{"type":"function","function":{"name":"f"}}]`, "tools", ""}, {`"prompt":"x","messages":[{"role":"user","content":"x"}]`, "messages", ""}, {`"prompt":"x","enable_thinking":false`, "enable_thinking", ""},
		{`"prompt":"x","chat_template_kwargs":{"a":1}`, "chat_template_kwargs", ""}, {`"prompt":"x","reasoning_effort":"low"`, "reasoning_effort", ""}, {`"prompt":"x","tool_choice":"required"`, "tool_choice", ""},
		{`"prompt":"x","tools":[],"tool_choice":"auto","messages":null,"chat_template_kwargs":{},"continue_final_message":false`, "", "[{x []}]"},
		{`"prompt":"x","n":3,"best_of":20`, "best_of", ""}, {`"prompt":"x","stream":true,"echo":true,"logprobs":1,"n":2`, "n", ""},
		{`"prompt":[` + strings.Repeat(`"a",`, 128) + `"a"]`, "prompt", ""},
	}
	for _, c := range cases {
		r := decode(Text{}, `{"model":"m",`+c.fields+`}`)
		if e, ok := errors.AsType[*api.Error](r.err); ok != (c.param != "") || ok && e.Field != c.param {
			t.Errorf("%.80s: got %v, want blame for %q", c.fields, r.err, c.param)
		} else if !ok && fmt.Sprint(r.Prompts) != c.want {
			t.Errorf("%.80s: got %v, want %s", c.fields, r.Prompts, c.want)
		}
	}
}

// No body makes the decoders panic, and what they accept keeps its promises.
func FuzzChatRequest(f *testing.F) {
	for _, seed := range []string{
		"", "null", "[]", body(""), body(`,"stop":["a"],"logit_bias":{"1":1},"n":2,"seed":-1,"stream":true,"stream_options":{"include_usage":true}`),
		body(`,"chat_template_kwargs":{"thinking":true},"tools":[],"response_format":{"type":"text"}`), body(`,"temperature":1e-400,"top_p":-0.0`),
		`{"model":"m","messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"x"}]}`,
		body(twoTools + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"g"}}]}},"parallel_tool_calls":false`),
		body(`,"functions":[{"name":"f"}],"function_call":{"name":"f"}`), body(twoTools + `,"tool_choice":{"type":"function","function":{"name":"f"}}`),
		body(`,"thinking":{"type":"enabled","budget_tokens":9},"reasoning":{"effort":"low","max_tokens":9,"exclude":true},"think":"high"`),
		`{"messages":[{"role":"assistant","content":[{"type":"image_url"}],"reasoning_details":[{"text":"a"}]}]}`,
		`{"model":"m","prompt":[[1,2],"a"],"echo":true,"logprobs":0}`, `{"tokens":[1,2]}`, `{"content":"x","with_pieces":true}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		limits := api.DefaultLimits()
		check := func(err error) bool {
			if err == nil {
				return true
			}
			e, ok := errors.AsType[*api.Error](err)
			if !ok {
				t.Errorf("%q: %v", body, err)
				return false
			}
			if status, _, text := (Chat{}).Problem(e); status != 400 || !json.Valid(text) {
				t.Errorf("%q: %d %s", body, status, text)
			}
			return false
		}
		chat := decode(Chat{}, string(body))
		if check(chat.err) {
			o := chat.Options
			if len(chat.Chat.Messages) == 0 || o.Choices < 1 || o.Choices > limits.Choices || o.MaxTokens < 0 || o.Sampling.Over(sample.Defaults()).Validate(vocab) != nil || len(o.Stop) > limits.Stops ||
				len(chat.Chat.Tools) > limits.Tools || chat.FunctionCall && !o.OneCall || chat.Chat.Thinking.Budget != nil && *chat.Chat.Thinking.Budget < 1 {
				t.Errorf("%q: accepted as %+v", body, chat.Request)
			}
		}
		text := decode(Text{}, string(body))
		if check(text.err) && (len(text.Prompts) == 0 || text.Options.MaxTokens < 0) {
			t.Errorf("%q: accepted as %+v", body, text.Request)
		}
		_, err := DecodeTokenize(body, limits)
		check(err)
		_, err = DecodeDetokenize(body)
		check(err)
	})
}
