package parse

import "github.com/atlas-inference/atlas/atlasrt/internal/chat"

func qwenRecords() []record {
	return []record{
		{name: "a call", answer: "<tool_call>\n<function=f>\n<parameter=x>\na b\n</parameter>\n</function>\n</tool_call>", want: []chat.Event{call(0, "f", `{"x": "a b"}`)}},
		{name: "parallel, text before, between and behind",
			answer: "<think>\nhm\n</think>\n\nLook.\n\n<tool_call>\n<function=f>\n</function>\n</tool_call>\nand\n<tool_call>\n<function=g>\n<parameter=y>\n2\n</parameter>\n</function>\n</tool_call>\nbye",
			want:   []chat.Event{thought("hm"), text("Look."), call(0, "f", "{}"), text("and"), call(1, "g", `{"y": "2"}`), text("bye")}},
		{name: "several in one block", answer: "<tool_call>\n<function=f>\n</function>\n<function=g>\n</function>\n</tool_call>", want: []chat.Event{call(0, "f", "{}"), call(1, "g", "{}")}},
		{name: "kinds", answer: "<tool_call>\n<function=typed>\n<parameter=text>\n1\n</parameter>\n<parameter=whole>\n-3\n</parameter>\n<parameter=number>\n1.5e3\n</parameter>\n<parameter=flag>\nTrue\n</parameter>\n" +
			"<parameter=list>\n[1, \"</parameter>\"]\n</parameter>\n<parameter=object>\n{\"a\": null}\n</parameter>\n<parameter=maybe>\nnull\n</parameter>\n<parameter=place>\n{}\n</parameter>\n</function>\n</tool_call>",
			want: []chat.Event{call(0, "typed", `{"text": "1", "whole": -3, "number": 1.5e3, "flag": true, "list": [1, "</parameter>"], "object": {"a": null}, "maybe": null, "place": {}}`)}},
		{name: "more kinds", answer: "<function=typed>\n<parameter=name>\nnull\n</parameter>\n<parameter=name>\nnullable\n</parameter>\n<parameter=either>\n7\n</parameter>\n<parameter=either>\n7 a\n</parameter>\n" +
			"<parameter=choice>\n2\n</parameter>\n<parameter=self>\n4\n</parameter>\n<parameter=any>\n5\n</parameter>\n<parameter=text>\nnull\n</parameter>\n<parameter=maybe>\nnone\n</parameter>\n</function>",
			want: []chat.Event{call(0, "typed", `{"name": null, "name": "nullable", "either": 7, "either": "7 a", "choice": 2, "self": 4, "any": "5", "text": "null", "maybe": null}`)}},
		{name: "values of no declared kind are text", answer: "<function=typed>\n<parameter=whole>\nthree\n</parameter>\n<parameter=list>\n[1,\n</parameter>\n<parameter=flag>\n1\n</parameter>\n<parameter=whole>\n\"4\"\n</parameter>\n</function>",
			want: []chat.Event{call(0, "typed", `{"whole": "three", "list": "[1,", "flag": "1", "whole": "\"4\""}`)}},
		{name: "one line end at each side", answer: "<function=f>\n<parameter=x>\n\n  a\n\n\n</parameter>\n<parameter=y>\n\n</parameter>\n<parameter=z>\n</parameter>\n</function>", want: []chat.Event{call(0, "f", `{"x": "\n  a\n\n", "y": "", "z": ""}`)}},
		{name: "tags in values", answer: "<tool_call>\n<function=f>\n<parameter=x>\nif a < b && c </parameter> d\n</parameter> e\n<b>\"q\\\"</b> ⟦</tool_call>⟧ <function=g> </function>\n</function> z\n</parameter>\n</function>\n</tool_call>",
			want: []chat.Event{call(0, "f", `{"x": "if a < b && c </parameter> d\n</parameter> e\n<b>\"q\\\"</b> </tool_call> <function=g> </function>\n</function> z"}`)}},
		{name: "no opener", answer: "Go: <function=f>\n<parameter=x>\n1\n</parameter>\n</function>\n</tool_call>", want: []chat.Event{text("Go:"), call(0, "f", `{"x": "1"}`)}},
		{name: "no closers of values", answer: "<tool_call>\n<function=f>\n<parameter=x>\n1\n<parameter=y>\n2\n</function>\n</tool_call>", want: []chat.Event{call(0, "f", `{"x": "1", "y": "2"}`)}},
		{name: "no closer of the function", answer: "<tool_call>\n<function=f>\n<parameter=x>\n1\n</parameter>\n</tool_call>\n<tool_call>\n<function=g>\n</tool_call> a", want: []chat.Event{call(0, "f", `{"x": "1"}`), call(1, "g", "{}"), text("a")}},
		{name: "no closer of the block", answer: "<tool_call>\n<function=f>\n</function>\n<tool_call>\n<function=g>\n</function>\nb", want: []chat.Event{call(0, "f", "{}"), call(1, "g", "{}"), text("b")}},
		{name: "in one line", answer: "<tool_call><function=f><parameter=x>a\n</parameter><parameter=y>b</parameter></function></tool_call>", want: []chat.Event{call(0, "f", `{"x": "a\n", "y": "b"}`)}},
		{name: "white space", answer: "<tool_call>  \n\n <function=f> \n\n <parameter=x>\n1\n  </parameter>\n\n\t</function>\n \n</tool_call> \n", want: []chat.Event{call(0, "f", `{"x": "1\n  "}`)}},
		{name: "unknown", answer: "a\n<tool_call>\n<function=h>\n<parameter=x>\n<tool_call>\n1\n</parameter>\n</function>\n</tool_call>\nb", marks: spelledMarks,
			want: []chat.Event{text("a\n<tool_call>\n<function=h>\n<parameter=x>\n<tool_call>\n1\n</parameter>\n</function>\n</tool_call>\nb")}},
		{name: "unknown, then known", answer: "<tool_call>\n<function=h>\n</function>\n</tool_call>\n<tool_call>\n<function=f>\n</function>\n</tool_call>", want: []chat.Event{text("<tool_call>\n<function=h>\n</function>\n</tool_call>"), call(0, "f", "{}")}},
		{name: "no call", answer: "<tool_call>\nmaybe\n</tool_call>", want: []chat.Event{text("<tool_call>\nmaybe\n</tool_call>")}},
		{name: "no name", answer: "in <function=\nf> it", want: []chat.Event{text("in <function=\nf> it")}},
		{name: "cut in a value", answer: "<tool_call>\n<function=f>\n<parameter=x>\nline\n\"two\"", want: []chat.Event{call(0, "f", `{"x": "line\n\"two\"`)}},
		{name: "cut in a number", answer: "<tool_call>\n<function=typed>\n<parameter=whole>\n12", want: []chat.Event{call(0, "typed", `{"whole": 12`)}},
		{name: "cut behind a value", answer: "<tool_call>\n<function=f>\n<parameter=x>\n1\n</parameter>\n", want: []chat.Event{call(0, "f", `{"x": "1"`)}},
		{name: "cut in a key", answer: "<tool_call>\n<function=f>\n<parameter=x>\n1\n</parameter>\n<parameter=yy", want: []chat.Event{call(0, "f", `{"x": "1", "yy`)}},
		{name: "cut in the name", answer: "<tool_call>\n<function=f", want: []chat.Event{text("<tool_call>\n<function=f")}},
		{name: "JSON instead of parameters", answer: "<tool_call>\n<function=f>\n{\"x\": 1}</function>\n</tool_call>\nc", want: []chat.Event{call(0, "f", `{"x": 1}`), text("c")}},
		{name: "broken behind a value", answer: "<tool_call>\n<function=f>\n<parameter=x>\n1\n</parameter>\n<parameter=\ny>\n</function>\n</tool_call>c", want: []chat.Event{call(0, "f", "{\"x\": \"1\"<parameter=\ny>\n"), text("c")}},
		{name: "a value that ends with no tag of the format", answer: "<tool_call>\n<function=f>\n<parameter=x>\n1\n</parameter>\n<parameter y>\n</function>\n</tool_call>c", want: []chat.Event{call(0, "f", `{"x": "1\n</parameter>\n<parameter y>"}`), text("c")}},
		{name: "unicode", answer: "天 <tool_call>\n<function=f>\n<parameter=城>\nZürich 😀\u2028\n</parameter>\n</function>\n</tool_call>気", want: []chat.Event{text("天"), call(0, "f", "{\"城\": \"Zürich 😀\u2028\"}"), text("気")}},
		{name: "one call only", oneCall: true, answer: "<tool_call>\n<function=f>\n</function>\n</tool_call>\n<tool_call>\n<function=g>\n</function>\n</tool_call>", want: []chat.Event{call(0, "f", "{}")}},
		{name: "spelled marks", marks: controlMarks, answer: "⟦<tool_call>⟧ x", want: []chat.Event{text("<tool_call> x")}},
		{name: "a control token ends a value", marks: controlMarks, answer: "<tool_call>\n<function=f>\n<parameter=x>\n1</tool_call>a", want: []chat.Event{call(0, "f", `{"x": "1"}`), text("a")}},
	}
}

func minimaxRecords() []record {
	return []record{
		{name: "a call", answer: "<minimax:tool_call>\n<invoke name=\"f\">\n<parameter name=\"x\">a b</parameter>\n</invoke>\n</minimax:tool_call>", want: []chat.Event{call(0, "f", `{"x": "a b"}`)}},
		{name: "opened by the prompt, parallel, text around", thinking: true,
			answer: "hm\n</think>\n\nLook.\n<minimax:tool_call>\n<invoke name=\"f\">\n</invoke>\n<invoke name=\"g\">\n<parameter name=\"y\">2</parameter>\n</invoke>\n</minimax:tool_call>\nbye",
			want:   []chat.Event{thought("hm"), text("Look."), call(0, "f", "{}"), call(1, "g", `{"y": "2"}`), text("bye")}},
		{name: "line ends belong to values", answer: "<minimax:tool_call><invoke name=\"f\"><parameter name=\"x\">\n a\n</parameter></invoke></minimax:tool_call>", want: []chat.Event{call(0, "f", `{"x": "\n a\n"}`)}},
		{name: "kinds", answer: "<minimax:tool_call>\n<invoke name=\"typed\">\n<parameter name=\"text\">1</parameter>\n<parameter name=\"whole\"> 3 </parameter>\n<parameter name=\"flag\">false</parameter>\n<parameter name=\"list\">[\"a\", {}]</parameter>\n<parameter name=\"maybe\">null</parameter>\n<parameter name=\"number\">0.5</parameter>\n</invoke>\n</minimax:tool_call>",
			want: []chat.Event{call(0, "typed", `{"text": "1", "whole": 3, "flag": false, "list": ["a", {}], "maybe": null, "number": 0.5}`)}},
		{name: "tags and quotes in values", answer: "<minimax:tool_call>\n<invoke name=\"f\">\n<parameter name=\"x\"><a href=\"b\">\\</a> </parameter> - ⟦</minimax:tool_call>⟧ {\"}</parameter>\n</invoke>\n</minimax:tool_call>",
			want: []chat.Event{call(0, "f", `{"x": "<a href=\"b\">\\</a> </parameter> - </minimax:tool_call> {\"}"}`)}},
		{name: "two blocks", answer: "<minimax:tool_call>\n<invoke name=\"f\">\n</invoke>\n</minimax:tool_call>\nthen <minimax:tool_call>\n<invoke name=\"g\">\n</invoke>\n</minimax:tool_call>", want: []chat.Event{call(0, "f", "{}"), text("then"), call(1, "g", "{}")}},
		{name: "unknown", answer: "a <minimax:tool_call>\n<invoke name=\"h\">\n<parameter name=\"x\">1</parameter>\n</invoke>\n</minimax:tool_call> b", want: []chat.Event{text("a <minimax:tool_call>\n<invoke name=\"h\">\n<parameter name=\"x\">1</parameter>\n</invoke>\n</minimax:tool_call> b")}},
		{name: "unknown beside known", answer: "<minimax:tool_call>\n<invoke name=\"f\">\n</invoke>\n<invoke name=\"h\">\n</invoke>\n</minimax:tool_call>", want: []chat.Event{call(0, "f", "{}"), text("<invoke name=\"h\">\n</invoke>\n</minimax:tool_call>")}},
		{name: "no call", answer: "<minimax:tool_call>\nno\n</minimax:tool_call>", want: []chat.Event{text("<minimax:tool_call>\nno\n</minimax:tool_call>")}},
		{name: "cut in a value", answer: "<minimax:tool_call>\n<invoke name=\"f\">\n<parameter name=\"x\">lin", want: []chat.Event{call(0, "f", `{"x": "lin`)}},
		{name: "cut in a list", answer: "<minimax:tool_call>\n<invoke name=\"typed\">\n<parameter name=\"list\">[1, ", want: []chat.Event{call(0, "typed", `{"list": [1, `)}},
		{name: "cut in the name", answer: "<minimax:tool_call>\n<invoke name=\"f", want: []chat.Event{text("<minimax:tool_call>\n<invoke name=\"f")}},
		{name: "no closers", answer: "<minimax:tool_call>\n<invoke name=\"f\">\n<parameter name=\"x\">1</parameter>\n</minimax:tool_call>c", want: []chat.Event{call(0, "f", `{"x": "1"}`), text("c")}},
		{name: "broken", answer: "<minimax:tool_call>\n<invoke name=\"f\">\nx=1\n</invoke>\n</minimax:tool_call>c", want: []chat.Event{call(0, "f", "x=1\n"), text("c")}},
		{name: "unicode", answer: "天<minimax:tool_call>\n<invoke name=\"f\">\n<parameter name=\"城\">Zürich 😀</parameter>\n</invoke>\n</minimax:tool_call>気", want: []chat.Event{text("天"), call(0, "f", `{"城": "Zürich 😀"}`), text("気")}},
		{name: "one call only", oneCall: true, answer: "<minimax:tool_call>\n<invoke name=\"f\">\n</invoke>\n<invoke name=\"g\">\n</invoke>\n</minimax:tool_call>", want: []chat.Event{call(0, "f", "{}")}},
	}
}
