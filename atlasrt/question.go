package main

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
)

// firstQuestion is what whoever starts a server in a terminal can paste into another one.
func firstQuestion(address, model string, chats, keys bool) string {
	route, asks := "/v1/chat/completions", map[string]any{"messages": []map[string]string{{"role": "user", "content": "Why is the sky blue?"}}}
	if !chats {
		route, asks = "/v1/completions", map[string]any{"prompt": "The sky is blue because"}
	}
	asks["model"], asks["max_tokens"] = model, 60
	body, err := json.Marshal(asks)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	key := ""
	if keys {
		key = " -H 'authorization: Bearer KEY'"
	}
	return fmt.Sprintf("\nAsk it in another terminal (Ctrl-C here stops the server):\n\n  curl http://%s%s -H 'content-type: application/json'%s \\\n    -d %s\n\n", reachable(address), route, key, quoted(string(body)))
}

// reachable is where this machine reaches an address that a server listens on.
func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip := net.ParseIP(strings.Trim(host, "[]")); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if ip != nil && ip.To4() == nil {
			host = "::1"
		}
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), port)
}

// quoted is a text as one word of a shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
