package tokenizer

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// chatTemplates are templates by name.
type chatTemplates map[string]string

// readTemplates reads one template, a list of named ones, or an object of name to template; null is none.
func readTemplates(data []byte) (chatTemplates, error) {
	templates := make(chatTemplates)
	switch data[0] {
	case '{':
		if err := json.Unmarshal(data, &templates); err != nil {
			return nil, fmt.Errorf("chat_template: %w", err)
		}
	case '[':
		var list []struct {
			Name     string `json:"name"`
			Template string `json:"template"`
		}
		if err := json.Unmarshal(data, &list); err != nil {
			return nil, fmt.Errorf("chat_template: %w", err)
		}
		for _, item := range list {
			templates[item.Name] = item.Template
		}
	default:
		var template string
		if err := json.Unmarshal(data, &template); err != nil {
			return nil, fmt.Errorf("chat_template: %w", err)
		}
		if template != "" {
			templates[defaultTemplate] = template
		}
	}
	return templates, nil
}

const defaultTemplate = "default"

// choose is the template that conversations use, and a note where the file leaves that open.
func (c chatTemplates) choose() (template, note string) {
	if template, ok := c[defaultTemplate]; ok || len(c) == 0 {
		return template, ""
	}
	names := slices.Sorted(maps.Keys(c))
	if len(names) > 1 {
		return "", fmt.Sprintf("none of the chat templates %s is the default: conversations have no template", strings.Join(names, ", "))
	}
	return c[names[0]], fmt.Sprintf("no chat template is the default: the only one, %q, is used", names[0])
}

// ParseTemplateFile reads a chat_template.json, {"chat_template": …}: its template, and a note where the file leaves open which.
func ParseTemplateFile(data []byte) (template, note string, err error) {
	f, err := readFile("chat_template.json", data)
	if err != nil || f.values["chat_template"] == nil {
		return "", "", err
	}
	templates, err := readTemplates(f.values["chat_template"])
	if err != nil {
		return "", "", fmt.Errorf("chat_template.json: %w", err)
	}
	template, note = templates.choose()
	return template, note, nil
}
