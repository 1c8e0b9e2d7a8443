package server

import "strings"

// verdict is a request and what becomes of it.
type verdict struct {
	name   string
	status int
	says   [4]says // by dialect
}

// verdicts are refused, bounded and odd requests. Where dialects differ, their APIs do.
func verdicts() []verdict {
	const user = `{"role":"user","content":"u"}`
	deep := strings.Repeat(`{"a":`, 65) + "1" + strings.Repeat("}", 65)
	long := strings.Repeat("x", 1<<20)
	return []verdict{
		{"T019 nothing", 400, everywhere("-", "")},
		{"T019 null", 400, everywhere("null", "")},
		{"T019 a list", 400, everywhere("[]", "")},
		{"T019 a string", 400, everywhere(`"x"`, "")},
		{"T019 half", 400, everywhere(`{"model":"tiny"`, "")},
		{"T019 more behind it", 400, everywhere(`,"x":1}x{"a":1`, "")},
		{"T020 brackets", 400, everywhere(strings.Repeat("[", 100_000), "")},
		{"T020 deep", 400, everywhere(`,"x":`+deep, "")},
		{"T020 many values", 400, everywhere(`,"x":`+repeat(250_001, "1"), "")},
		{"T021 a key twice", 400, everywhere(`,"model":"tiny"`, "")},
		{"T021 a key twice, spelled otherwise", 400, everywhere(`,"mod\u0065l":"tiny"`, "")},
		{"T022 no UTF-8", 400, everywhere(",\"x\":\"\xff\"", "")},
		{"T022 half a surrogate", 200, everywhere(`,"x":"\ud800\u0000"`, "")},
		{"T023 NaN", 400, everywhere(`,"temperature":NaN`, "")},
		{"T023 a string for a number", 400, everywhere(`,"temperature":"1"`, "temperature")},
		{"T023 a huge number", 400, everywhere(`,"temperature":1e999`, "temperature")},
		{"T023 a fraction", 400, everywhere(`,"top_k":1.5`, "top_k")},
		{"T023 beyond 64 bits", 400, everywhere(`,"top_k":9223372036854775808`, "top_k")},
		{"T023 minus nothing", 200, everywhere(`,"temperature":-0.0`, "")},
		{"T025 no turns", 400, [4]says{{`{"model":"tiny"}`, "messages"}, {`{"model":"tiny"}`, "prompt"}, {`{"model":"tiny"}`, "input"}, {`{"max_tokens":9}`, "messages"}}},
		{"T025 an empty list", 400, turns(`[]`, "")},
		{"T025 no list", 400, turns(`{}`, "")},
		{"T025 null in the list", 400, turns(`[`+user+`,null]`, "[1]")},
		{"T025 an unknown role", 400, turns(`[{"role":"god","content":"x"}]`, "[0].role")},
		{"T025 no role", 400, chats(`[{"content":"x"}]`, `[{"type":"message","content":"x"}]`, `[{"content":"x"}]`, "[0].role")},
		{"T025 no content", 400, turns(`[{"role":"user"}]`, "[0].content")},
		{"T025 a number as content", 400, turns(`[{"role":"user","content":7}]`, "[0].content")},
		{"T025 a part that is none", 400, turns(`[{"role":"user","content":[7]}]`, "[0].content[0]")},
		{"T025 a part without a type", 400, turns(`[{"role":"user","content":[{"text":"x"}]}]`, "[0].content[0].type")},
		{"T025 a part without a text", 400, turns(`[{"role":"user","content":[{"type":"text"}]}]`, "[0].content[0].text")},
		{"T026 an empty text", 400, [4]says{inText: {`{"prompt":""}`, "prompt"}}},
		{"T026 an empty turn", 200, turns(`[{"role":"user","content":""}]`, "")},
		{"T027 too many turns", 400, turns(repeat(10_001, user), "")},
		{"T027 a hundred thousand turns", 400, everywhere(`,"x":`+repeat(100_000, user), "")},
		{"T028 temperature", 400, everywhere(`,"temperature":-1`, "temperature")},
		{"T028 a high temperature", 400, everywhere(`,"temperature":2.01`, "temperature")},
		{"T028 top_p", 400, everywhere(`,"top_p":1.1`, "top_p")},
		{"T028 null", 200, everywhere(`,"temperature":null,"top_p":null,"top_k":null,"stream":null,"tools":null,"tool_choice":null,"metadata":null`, "")},
		{"T030 no answers", 400, everywhere(`,"n":0`, "n")},
		{"T030 many answers", 400, everywhere(`,"n":2147483648`, "n")},
		{"T030 one answer", 200, everywhere(`,"n":1`, "")},
		{"T032 most tokens", 400, [4]says{{`,"max_tokens":-1`, "max_tokens"}, {`,"max_tokens":-1`, "max_tokens"}, {`,"max_output_tokens":-1`, "max_output_tokens"}, {`{"max_tokens":-1,"messages":[` + user + `]}`, "max_tokens"}}},
		{"T032 all that there are", 200, [4]says{{`,"max_tokens":1000000000000`, ""}, {`,"max_tokens":1000000000000`, ""}, {`,"max_output_tokens":1000000000000`, ""}, {`{"max_tokens":1000000000000,"messages":[` + user + `]}`, ""}}},
		{"T033 top_k", 400, everywhere(`,"top_k":-2`, "top_k")},
		{"T034 top_logprobs", 400, [4]says{{`,"logprobs":true,"top_logprobs":21`, "top_logprobs"}, {`,"logprobs":6`, "logprobs"}, {`,"top_logprobs":21`, "top_logprobs"}, {`,"top_logprobs":21`, "top_logprobs"}}},
		{"T033 seeds", 200, everywhere(`,"seed":-1`, "")},
		{"T033 penalties", 400, everywhere(`,"presence_penalty":2.1`, "presence_penalty")},
		{"T036 biases", 400, everywhere(`,"logit_bias":{"x":1}`, "logit_bias")},
		{"T037 biases of no token", 400, everywhere(`,"logit_bias":{"259":1}`, "logit_bias")},
		{"T037 bans of no token", 400, [4]says{{`,"banned_tokens":[259]`, "banned_tokens"}, {`,"banned_tokens":[259]`, "banned_tokens"}, {`,"banned_tokens":[259]`, "banned_tokens"}, {`,"banned_tokens":[259]`, "banned_tokens"}}},
		{"T037 allowed tokens that are none", 400, everywhere(`,"allowed_token_ids":[1,259]`, "allowed_token_ids")},
		{"T028 XTC", 400, everywhere(`,"xtc_probability":1.5`, "xtc_probability")},
		{"T028 DRY", 400, everywhere(`,"dry_multiplier":1,"dry_base":0.5`, "dry_base")},
		{"T039 five stops", 400, [4]says{{`,"stop":["1","2","3","4","5"]`, "stop"}, {`,"stop":["1","2","3","4","5"]`, "stop"}, {`,"stop":["1","2","3","4","5"]`, "stop"}, {`,"stop_sequences":["1","2","3","4","5"]`, "stop_sequences"}}},
		{"T039 an empty stop", 400, [4]says{{`,"stop":[""]`, "stop"}, {`,"stop":[""]`, "stop"}, {`,"stop":[""]`, "stop"}, {`,"stop_sequences":[""]`, "stop_sequences"}}},
		{"T039 a long stop", 400, [4]says{{`,"stop":["` + long + `"]`, "stop"}, {`,"stop":["` + long + `"]`, "stop"}, {`,"stop":["` + long + `"]`, "stop"}, {`,"stop_sequences":["` + long + `"]`, "stop_sequences"}}},
		{"T040 no list", 400, talks(`,"tools":{}`, "tools")},
		{"T040 no tool", 400, talks(`,"tools":[7]`, "tools[0]")},
		{"T040 a bad name", 400, tools(`"f g"`, `""`, ``, "name")},
		{"T040 a long name", 400, tools(`"`+strings.Repeat("f", 129)+`"`, `""`, ``, "name")},
		{"T040 no name", 400, tools(`null`, `""`, ``, "name")},
		{"T040 a long description", 400, tools(`"f"`, `"`+long+`"`, ``, "name")},
		{"T040 a strict tool", 200, tools(`"f"`, `""`, `,"strict":true`, "")},
		{"T040 parameters", 400, [4]says{{`,"tools":[{"type":"function","function":{"name":"f","parameters":[]}}]`, "tools[0].function.parameters"}, {}, {`,"tools":[{"type":"function","name":"f","parameters":[]}]`, "tools[0].parameters"}, {`,"tools":[{"name":"f","input_schema":[]}]`, "tools[0].input_schema"}}},
		{"T040 equal names", 400, [4]says{{`,"tools":` + repeat(2, `{"type":"function","function":{"name":"f"}}`), "tools[1].function.name"}, {}, {`,"tools":` + repeat(2, `{"type":"function","name":"f"}`), "tools[1].name"}, {`,"tools":` + repeat(2, `{"name":"f","input_schema":{}}`), "tools[1].name"}}},
		{"T040 many tools", 400, [4]says{{`,"tools":` + manyFunctions(513, `{"type":"function","function":{"name":"%s"}}`), "tools[512].function.name"}, {}, {`,"tools":` + manyFunctions(513, `{"type":"function","name":"%s"}`), "tools[512].name"}, {`,"tools":` + manyFunctions(513, `{"name":"%s","input_schema":{}}`), "512"}}},
		{"T041 a call that must be", 200, chosen(`"required"`, "", `"required"`, "", `{"type":"any"}`, "")},
		{"T041 a call that must be, of nothing", 400, [4]says{{`,"tool_choice":"required"`, "tool_choice"}, {}, {`,"tool_choice":"required"`, "tool_choice"}, {`,"tool_choice":{"type":"any"}`, "tool_choice"}}},
		{"T041 a certain tool", 200, chosen(`{"type":"function","function":{"name":"f"}}`, "", `{"type":"function","name":"f"}`, "", `{"type":"tool","name":"f"}`, "")},
		{"T041 a tool that is not there", 400, chosen(`{"type":"function","function":{"name":"g"}}`, "tool_choice.function.name", `{"type":"function","name":"g"}`, "tool_choice.name", `{"type":"tool","name":"g"}`, "tool_choice.name")},
		{"T041 no choice", 400, chosen(`"maybe"`, "tool_choice", `"maybe"`, "tool_choice", `{"type":"maybe"}`, "tool_choice.type")},
		{"T041 a choice of no kind", 400, chosen(`7`, "tool_choice", `7`, "tool_choice", `7`, "tool_choice")},
		{"T041 none of the tools", 400, chosen(`{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[]}}`, "tool_choice.allowed_tools.tools", `{"type":"allowed_tools","mode":"auto","tools":[]}`, "tool_choice.tools", `{"type":"allowed_tools"}`, "tool_choice.type")},
		{"T041 some of the tools", 200, [4]says{inChat: {`,"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"allowed_tools","allowed_tools":{"tools":[{"type":"function","function":{"name":"f"}}]}}`, ""}, inResponses: {`,"tools":[{"type":"function","name":"f"}],"tool_choice":{"type":"allowed_tools","tools":[{"type":"function","name":"f"}]}`, ""}}},
		{"T041 no call", 200, chosen(`"none"`, "", `"none"`, "", `{"type":"none"}`, "")},
		{"T042 a result of nothing", 400, [4]says{{`{"messages":[` + user + `,{"role":"tool","content":"1"}]}`, "messages[1].tool_call_id"}, {}, {`{"input":[` + user + `,{"type":"function_call_output","output":"1"}]}`, "input[1].call_id"},
			{`{"max_tokens":9,"messages":[{"role":"user","content":[{"type":"tool_result","content":"1"}]}]}`, "messages[0].content[0].tool_use_id"}}},
		{"T042 a result without a call", 200, chats(`[`+user+`,{"role":"tool","tool_call_id":"1","content":"1"}]`, `[`+user+`,{"type":"function_call_output","call_id":"1","output":"1"}]`, `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"1"}]}]`, "")},
		{"T043 an assistant that says nothing", 400, turns(`[`+user+`,{"role":"assistant","content":null}]`, "[1].content")},
		{"T044 an unknown model", 404, [4]says{{`{"model":"big","messages":[` + user + `]}`, "model"}, {`{"model":"big","prompt":"x"}`, "model"}, {`{"model":"big","input":"x"}`, "model"}, {`{"model":"big","max_tokens":9,"messages":[` + user + `]}`, "model"}}},
		{"T044 a path as a model", 404, [4]says{{`{"model":"../x","messages":[` + user + `]}`, "model"}, {`{"model":"../x","prompt":"x"}`, "model"}, {`{"model":"../x","input":"x"}`, "model"}, {`{"model":"../x","max_tokens":9,"messages":[` + user + `]}`, "model"}}},
		{"T044 a long model", 404, [4]says{{`{"model":"` + long + `","messages":[` + user + `]}`, "model"}, {`{"model":"` + long + `","prompt":"x"}`, "model"}, {`{"model":"` + long + `","input":"x"}`, "model"}, {`{"model":"` + long + `","max_tokens":9,"messages":[` + user + `]}`, "model"}}},
		{"T044 a number as a model", 400, [4]says{{`{"model":1,"messages":[` + user + `]}`, "model"}, {`{"model":1,"prompt":"x"}`, "model"}, {`{"model":1,"input":"x"}`, "model"}, {`{"model":1,"max_tokens":9,"messages":[` + user + `]}`, "model"}}},
		{"T045 tensors", 400, everywhere(`,"prompt_embeds":"AA=="`, "prompt_embeds")},
		{"T045 images as tensors", 400, everywhere(`,"image_embeds":[[0.5]]`, "image_embeds")},
		{"T076 JSON", 200, [4]says{{`,"response_format":{"type":"json_object"}`, ""}, {`,"response_format":{"type":"json_object"}`, ""}, {`,"text":{"format":{"type":"json_object"}}`, ""}, {}}},
		{"T076 a form that messages do not have", 400, [4]says{inMessages: {`,"output_config":{"format":{"type":"json_object"}}`, "output_config.format.type"}}},
		{"T076 a schema", 200, schemas(`{"type":"object"}`, "")},
		{"T076 a schema that need not be held", 200, looseSchemas(`{"type":"object"}`, "")},
		{"T076 no object", 400, schemas(`[]`, "schema")},
		{"T076 an unknown type", 400, schemas(`{"type":"foo"}`, "schema")},
		{"T076 an unknown type that need not be held", 400, looseSchemas(`{"type":"foo"}`, "schema")},
		{"T076 no schema", 400, schemas(`null`, "schema")},
		{"T076 no name", 400, [4]says{{`,"response_format":{"type":"json_schema","json_schema":{"schema":{}}}`, "response_format.json_schema.name"}, {`,"response_format":{"type":"json_schema","json_schema":{"schema":{}}}`, "response_format.json_schema.name"}, {`,"text":{"format":{"type":"json_schema","schema":{}}}`, "text.format.name"}, {}}},
		{"T076 no value", 400, schemas(`{"type":"string","enum":[1]}`, "schema")},
		{"T076 a form by the name of another API", 400, [4]says{inResponses: {`,"response_format":{"type":"json_object"}`, "response_format"}, inMessages: {`,"response_format":{"type":"json_object"}`, "response_format"}}},
		{"T076 forms of other servers", 200, [4]says{inChat: {`,"guided_json":{"type":"object"}`, ""}, inText: {`,"structured_outputs":{"choice":["a","b"]}`, ""}}},
		{"T076 forms of other servers elsewhere", 400, [4]says{inResponses: {`,"guided_json":{"type":"object"}`, "guided_json"}, inMessages: {`,"guided_json":{"type":"object"}`, "guided_json"}}},
		{"T076 two forms", 400, [4]says{inChat: {`,"guided_json":{},"guided_choice":["a"]`, "guided_choice"}, inText: {`,"guided_json":{},"guided_choice":["a"]`, "guided_choice"}}},
		{"T076 an end that is ignored", 400, [4]says{inChat: {`,"guided_json":{},"ignore_eos":true`, "ignore_eos"}, inText: {`,"guided_json":{},"ignore_eos":true`, "ignore_eos"}}},
		{"T076 a bad schema of a strict tool", 400, [4]says{
			{`,"tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":{"type":"object","properties":{"a":{"type":"foo"}}}}}]`, "tools[0].function"}, {},
			{`,"tools":[{"type":"function","name":"f","strict":true,"parameters":{"type":"object","properties":{"a":{"type":"foo"}}}}]`, "tools[0]"}, {`,"tools":[{"name":"f","strict":true,"input_schema":{"type":"object","properties":{"a":{"type":"foo"}}}}]`, "tools[0]"}}},
		{"T077 a pattern", 400, schemas(`{"type":"string","pattern":"("}`, "schema")},
		{"T077 a pattern that refers back", 400, schemas(`{"type":"string","pattern":"^(a)\\1$"}`, "schema")},
		{"T077 expressions of other servers", 400, [4]says{inChat: {`,"guided_regex":"("`, "guided_regex"}, inText: {`,"guided_regex":"(a)\\1"`, "guided_regex"}}},
		{"T077 grammars of other servers", 400, [4]says{inChat: {`,"grammar":"root ::= a"`, "grammar"}, inText: {`,"guided_grammar":"start: a"`, "guided_grammar"}}},
		{"T078 a schema in itself", 200, schemas(`{"type":"object","properties":{"a":{"$ref":"#"},"b":{"$ref":"#/$defs/b"}},"$defs":{"b":{"type":"array","items":{"$ref":"#/$defs/c"}},"c":{"anyOf":[{"$ref":"#/$defs/b"},{"type":"null"}]}}}`, "")},
		{"T078 a schema that is itself", 400, schemas(`{"$ref":"#"}`, "schema")},
		{"T078 a deep schema", 400, [4]says{inChat: {`,"guided_json":"` + strings.Repeat(`[`, 10_000) + `"`, "guided_json"}, inText: {`,"guided_json":"` + strings.Repeat(`{\"not\":`, 10_000) + `{}` + strings.Repeat(`}`, 10_000) + `"`, "guided_json"}}},
		{"T079 repetitions of repetitions", 400, schemas(`{"type":"string","pattern":"^((((a{1,100000}b){1,100000}c){1,100000}d){1,100000}){2}$","minLength":1000000000}`, "schema")},
		{"T079 many choices", 200, schemas(`{"anyOf":`+manyFunctions(10_000, `{"const":"%s"}`)+`}`, "")},
		{"T080 a schema elsewhere", 400, schemas(`{"$ref":"http://127.0.0.1:1/schema.json"}`, "schema")},
		{"T080 a file", 400, schemas(`{"type":"array","items":{"$ref":"file:///x/y.json"}}`, "schema")},
		{"T084 a template", 400, everywhere(`,"chat_template":"{{ messages }}"`, "chat_template")},
		{"T085 template variables", 400, talks(`,"chat_template_kwargs":{"messages":[]}`, "chat_template_kwargs")},
		{"T088 marks in a text", 200, turns(`[{"role":"user","content":"<|im_start|>system <|user|> <|image_pad|> <tool_call>"}]`, "")},
		{"T090 code in arguments", 200, chats(`[`+user+`,{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\":\"__import__('os') ${x} {{y}}\"}"}}]},{"role":"tool","tool_call_id":"1","content":"{{ z }}"}]`,
			`[`+user+`,{"type":"function_call","call_id":"1","name":"f","arguments":"{\"a\":\"__import__('os') ${x} {{y}}\"}"},{"type":"function_call_output","call_id":"1","output":"{{ z }}"}]`,
			`[`+user+`,{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{"a":"__import__('os') ${x} {{y}}"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"{{ z }}"}]}]`, "")},
		{"T091 an image", 400, image("data:image/png;base64,iVBORw0KGgo=")},
		{"T091 an image that a tool gives", 200, [4]says{{`{"messages":[` + user + `,{"role":"tool","tool_call_id":"1","content":[{"type":"image_url","image_url":{"url":"x"}}]}]}`, ""}, {},
			{`{"input":[` + user + `,{"type":"function_call_output","call_id":"1","output":[{"type":"input_image","image_url":"x"}]}]}`, ""},
			{`{"max_tokens":9,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"image","source":{}}]}]}]}`, ""}}},
		{"T091 sounds", 400, part(`{"type":"input_audio","input_audio":{"data":"AA==","format":"wav"}}`, `{"type":"input_audio","data":"AA=="}`, `{"type":"document","source":{}}`)},
		{"T092 no base64", 400, image("data:image/png;base64,@@@@")},
		{"T092 another type", 400, image("data:text/html,<script>")},
		{"T092 nothing", 400, image("")},
		{"T092 an image without a source", 400, part(`{"type":"image_url"}`, `{"type":"input_image"}`, `{"type":"image"}`)},
		{"T097 places that no error may show", 400, image("file:///dev/shm/0xdeadbeef/etc/passwd")},
		{"T099 many images", 400, chats(`[{"role":"user","content":`+repeat(33, `{"type":"image_url","image_url":{"url":"x"}}`)+`}]`, `[{"role":"user","content":`+repeat(33, `{"type":"input_image","image_url":"x"}`)+`}]`, `[{"role":"user","content":`+repeat(33, `{"type":"image","source":{}}`)+`}]`, "[0].content[0].type")},
		{"T099 a large image", 400, image("data:image/png;base64," + strings.Repeat("A", 3<<20))},
		{"T099 more than the largest body", 413, everywhere(`,"x":"`+strings.Repeat("A", 5<<20)+`"`, "")},
		{"a stream that is neither", 400, everywhere(`,"stream":"yes"`, "stream")},
	}
}

// schemas are forms of a strict JSON schema; the path of what is blamed goes on from its object.
func schemas(schema, field string) [4]says {
	return schemasOf(`{"name":"n","strict":true,"schema":`+schema+`}`, schema, field)
}

// looseSchemas need not be held.
func looseSchemas(schema, field string) [4]says {
	s := schemasOf(`{"name":"n","schema":`+schema+`}`, schema, field)
	s[inMessages] = says{} // which has only strict ones
	return s
}

func schemasOf(form, schema, field string) [4]says {
	of := func(body, path string) says {
		if field == "" {
			path = ""
		}
		return says{body, path + field}
	}
	chat := of(`,"response_format":{"type":"json_schema","json_schema":`+form+`}`, "response_format.json_schema.")
	return [4]says{chat, chat, of(`,"text":{"format":{"type":"json_schema",`+form[1:]+`}`, "text.format."), of(`,"output_config":{"format":{"type":"json_schema","schema":`+schema+`}}`, "output_config.format.")}
}
