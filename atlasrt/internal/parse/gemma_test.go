package parse

import "github.com/atlas-inference/atlas/atlasrt/internal/chat"

func gemmaRecords() []record {
	return []record{
		{name: "a call", answer: `<|tool_call>call:f{x:<|"|>a b<|"|>}<tool_call|>`, want: []chat.Event{call(0, "f", `{"x": "a b"}`)}},
		{name: "all kinds", answer: `<|tool_call>call:f{b:true,l:[1,<|"|>two<|"|>,[],{}],n:-3.5e1,o:{k:{z:null},<|"|>a b<|"|>:false},t:<|"|><|"|>}<tool_call|>`,
			want: []chat.Event{call(0, "f", `{"b": true, "l": [1, "two", [], {}], "n": -3.5e1, "o": {"k": {"z": null}, "a b": false}, "t": ""}`)}},
		{name: "thoughts, text, parallel", answer: "<|channel>thought\nhm\n<channel|>Look. <|tool_call>call:f{}<tool_call|><|tool_call>call:g{n:1}<tool_call|> and <|tool_call>call:g{}<tool_call|>\nbye",
			want: []chat.Event{thought("hm"), text("Look."), call(0, "f", "{}"), call(1, "g", `{"n": 1}`), text("and"), call(2, "g", "{}"), text("bye")}},
		{name: "text is literal", answer: "<|tool_call>call:f{x:<|\"|>a\n\"q\" \\n }],: <|tool_call>call:g{}<tool_call|>\x01<|\"|>}<tool_call|>", want: []chat.Event{call(0, "f", `{"x": "a\n\"q\" \\n }],: <|tool_call>call:g{}<tool_call|>\u0001"}`)}},
		{name: "white space", answer: "<|tool_call> call: f { x : 1 , l : [ 1 , 2 ] } <tool_call|> \n", want: []chat.Event{call(0, "f", `{"x": 1, "l": [1, 2]}`)}},
		{name: "words", answer: `<|tool_call>call:f{a:None,b:True,c:north west,d:12:30,e:<|"|>x<|"|>}<tool_call|>`, want: []chat.Event{call(0, "f", `{"a": null, "b": true, "c": "north west", "d": "12:30", "e": "x"}`)}},
		{name: "JSON", answer: `<|tool_call>call:f{"x": "a, \"b\"}", "y": [1]}<tool_call|>`, want: []chat.Event{call(0, "f", `{"x": "a, \"b\"}", "y": [1]}`)}},
		{name: "unknown", answer: `a <|tool_call>call:h{x:<|"|>1<|"|>}<tool_call|> b`, want: []chat.Event{text(`a <|tool_call>call:h{x:<|"|>1<|"|>}<tool_call|> b`)}},
		{name: "no call", answer: `<|tool_call>f{}<tool_call|>`, want: []chat.Event{text(`<|tool_call>f{}<tool_call|>`)}},
		{name: "no closer", answer: `<|tool_call>call:f{}<|tool_call>call:g{}`, want: []chat.Event{call(0, "f", "{}"), call(1, "g", "{}")}},
		{name: "brackets too many", answer: `<|tool_call>call:f{}}]<tool_call|>x`, want: []chat.Event{call(0, "f", "{}"), text("x")}},
		{name: "cut in text", answer: `<|tool_call>call:f{x:<|"|>lin`, want: []chat.Event{call(0, "f", `{"x": "lin`)}},
		{name: "cut in a number", answer: `<|tool_call>call:f{x:12`, want: []chat.Event{call(0, "f", `{"x": 12`)}},
		{name: "cut in a key", answer: `<|tool_call>call:f{x:1,yy`, want: []chat.Event{call(0, "f", `{"x": 1, "yy`)}},
		{name: "cut in the name", answer: `<|tool_call>call:f`, want: []chat.Event{text(`<|tool_call>call:f`)}},
		{name: "broken", answer: `<|tool_call>call:f{x:1;y=2,]<tool_call|>z`, want: []chat.Event{call(0, "f", `{"x": "1;y=2", ]`), text("z")}},
		{name: "broken in a list", answer: `<|tool_call>call:f{l:[1}<tool_call|><|tool_call>call:g{}<tool_call|>`, want: []chat.Event{call(0, "f", `{"l": [1}`), call(1, "g", "{}")}},
		{name: "no value", answer: `<|tool_call>call:f{x:,y:1}<tool_call|>`, want: []chat.Event{call(0, "f", `{"x": ,y:1}`)}},
		{name: "unicode", answer: `天<|tool_call>call:f{城:<|"|>Zürich 😀<|"|>}<tool_call|>気`, want: []chat.Event{text("天"), call(0, "f", `{"城": "Zürich 😀"}`), text("気")}},
		{name: "one call only", oneCall: true, answer: `<|tool_call>call:f{} a <tool_call|><|tool_call>call:g{}<tool_call|>`, want: []chat.Event{call(0, "f", "{}")}},
		{name: "spelled marks", marks: controlMarks, answer: `⟦<|tool_call>⟧call:f{}⟦<tool_call|>⟧`, want: []chat.Event{text(`<|tool_call>call:f{}<tool_call|>`)}},
		{name: "a spelled mark in text", marks: controlMarks, answer: `<|tool_call>call:f{x:<|"|>⟦<|"|>⟧,<|"|>}<tool_call|>`, want: []chat.Event{call(0, "f", `{"x": "<|\"|>,"}`)}},
	}
}

func gemmaThoughtRecords() []record {
	return []record{
		{name: "thoughts", answer: "<|channel>thought\na\nb<channel|>\nc", want: []chat.Event{thought("a\nb"), text("c")}},
		{name: "none", answer: "thought\nhi", want: []chat.Event{text("thought\nhi")}},
		{name: "empty", answer: "<|channel>thought\n<channel|>hi", want: []chat.Event{text("hi")}},
		{name: "empty in one line", answer: "<|channel>thought<channel|>hi", want: []chat.Event{text("hi")}},
		{name: "opened by the prompt", thinking: true, answer: "a<channel|>b", want: []chat.Event{thought("a"), text("b")}},
		{name: "opened twice", thinking: true, answer: "<|channel>thought\na<channel|>b", want: []chat.Event{thought("a"), text("b")}},
		{name: "never closed", answer: "<|channel>thought\na", want: []chat.Event{thought("a")}},
		{name: "another channel", answer: "<|channel>final\na", want: []chat.Event{text("<|channel>final\na")}},
		{name: "cut in the mark", answer: "<|channel>thou", want: []chat.Event{text("<|channel>thou")}},
		{name: "a call behind them", answer: "<|channel>thought\na<channel|><|tool_call>call:f{}<tool_call|>", want: []chat.Event{thought("a"), call(0, "f", "{}")}},
		{name: "again", marks: controlMarks, answer: "a<|channel>thought\nb<channel|>c", want: []chat.Event{text("a"), thought("b"), text("c")}},
		{name: "in an answer", marks: spelledMarks, answer: "a <|channel>thought\nb<channel|>c", want: []chat.Event{text("a <|channel>thought\nb<channel|>c")}},
	}
}
