package main

import (
	"io"
	"log/slog"
)

// logFlags say what a server logs, and how.
type logFlags struct {
	LogLevel  string `help:"Least level of lines to log: debug, info, warn or error." enum:"debug,info,warn,error" default:"info"`
	LogFormat string `help:"How to write them: text or json." enum:"text,json" default:"text"`
}

// logger writes to w.
func (f logFlags) logger(w io.Writer) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.LogLevel)); err != nil {
		panic("BUG: " + err.Error())
	}
	options := &slog.HandlerOptions{Level: level}
	if f.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
