package main

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
)

// firstQuestion is what whoever starts a server in a terminal can paste into another one.
func firstQuestion(address, model string, chats, keys bool) string {
	route, asks := "/v1/chat/completions", `"messages": [{"role": "user", "content": "Why is the sky blue?"}]`
	if !chats {
		route, asks = "/v1/completions", `"prompt": "The sky is blue because"`
	}
	name, err := json.Marshal(model)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	lines := []string{"curl http://" + reachable(address) + route, "-H 'content-type: application/json'"}
	if keys {
		lines = append(lines, "-H 'authorization: Bearer KEY'")
	}
	lines = append(lines, "-d "+quoted(fmt.Sprintf(`{"model": %s, "max_tokens": 60,`+"\n        "+`%s}`, name, asks)))
	return "\nAsk it from another terminal (Ctrl-C here stops the server):\n\n  " + strings.Join(lines, " \\\n    ") + "\n\n"
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
