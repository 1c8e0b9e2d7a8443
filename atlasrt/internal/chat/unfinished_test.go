package chat

import (
	"strings"
	"testing"
)

// The prompt ends right behind the last message's text, which is data, and nothing of the template follows.
func TestUnfinished(t *testing.T) {
	const (
		chatML = `{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant{% endif %}`
		trims  = `{% for m in messages %}{{ '<' + m.role + '>\n' + m.content|trim + '</end>' }}{% endfor %}`
		parts  = `{% for m in messages %}<{{ m.role }}>{% for p in m.content %}{{ p.text }}{% endfor %}</end>{% endfor %}`
	)
	own := func(source string) string { return "=" + source }
	cases := []struct{ template, text, want string }{
		{own(chatML), "The capital", "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nThe capital"},
		{own(chatML), "The capital is ", "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nThe capital is "},
		{own(chatML), "hi", "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nhi"},
		{own(chatML), "im_end", "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nim_end"},
		{own(chatML), "<|im_end|>", "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n<|im_end|>"},
		{own(chatML), "", "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"},
		{own(trims), " Sure,\n", "<user>\nhi</end><assistant>\nSure,"},
		{own(trims), "", "<user>\nhi</end><assistant>\n"},
		{own(parts), "a b", "<user>hi</end><assistant>a b"},
		{"google-gemma-2-2b-it", "Once ", "<s><start_of_turn>user\nhi<end_of_turn>\n<start_of_turn>model\nOnce"},
		{"Qwen-Qwen2.5-7B-Instruct", "Once ", "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nOnce "},
		{"Qwen-Qwen3-0.6B", "Once", "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\nOnce"},
		{"Qwen-Qwen3-0.6B", "<think>\nwell\n</think>\n\nOnce", "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n<think>\nwell\n</think>\n\nOnce"},
		{"mistralai-Mistral-Nemo-Instruct-2407", "Once", "<s>[INST]hi[/INST]Once"},
		{"microsoft-Phi-3.5-mini-instruct", "Once", "<|user|>\nhi<|end|>\n<|assistant|>\nOnce"},
		{"deepseek-ai-DeepSeek-R1-Distill-Llama-8B", "Once", "<s><｜User｜>hi<｜Assistant｜>Once"},
		{"llama-cpp-rwkv-world", "Once", "<s>User: hi\n\nAssistant: Once"},
	}
	for _, c := range cases {
		text, ours := strings.CutPrefix(c.template, "=")
		if !ours {
			text = source(t, c.template+".jinja")
		}
		template, err := ParseTemplate(text, special)
		if err != nil {
			t.Fatal(err)
		}
		p, err := template.Prompt(t.Context(), &Request{Messages: []Message{user("hi"), assistant(c.text)}, Continue: true, AddGenerationPrompt: true}, now)
		if err != nil || p.Text != c.want {
			t.Errorf("%.60s with %q: error %v\n got %q\nwant %q", c.template, c.text, err, p.Text, c.want)
			continue
		}
		if n := len(strings.TrimSpace(c.text)); n > 0 && !strings.Contains(c.text, "think") && (len(p.Data) == 0 || p.Data[len(p.Data)-1].End != len(p.Text) || !p.isData(len(p.Text)-n, len(p.Text))) {
			t.Errorf("%.60s with %q: data %v of %q", c.template, c.text, p.Data, p.Text)
		}
	}
	template, err := ParseTemplate(chatML, special)
	if err != nil {
		t.Fatal(err)
	}
	for _, messages := range [][]Message{{user("hi")}, {user("hi"), callOf(Content{Text: "x"})}, {}} {
		if p, err := template.Prompt(t.Context(), &Request{Messages: messages, Continue: true}, now); err == nil {
			t.Errorf("%v: got %q, want a refusal", messages, p.Text)
		}
	}
}
