package server

import (
	"errors"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
)

// Limits bound what clients can make the server do. A zero field means its default; the queue's limits are the engine's.
type Limits struct {
	BodyBytes     int64 // of a request; 32 MiB
	InFlightBytes int64 // of all bodies over 64 KiB that are no tokens yet, at least BodyBytes; BodyBytes
	HeaderBytes   int   // of a request; 32 KiB
	Connections   int   // open at a time, more wait to be accepted; 4096

	Messages  int // of a conversation; 10,000
	Prompts   int // of a completions request; 128
	Choices   int // answers to one prompt, n; 8
	Stops     int // stop strings; 4
	StopBytes int // of each; 256
	Biases    int // entries of logit_bias; 1024

	// CountTokens is how many tokens /tokenize counts and /detokenize takes: 262,144, or the context where that is more.
	// Clients count texts that are too long for the model, to cut them.
	CountTokens int

	StoredResponses int           // answers that are kept to be fetched and gone on from; 10,000
	StoredBytes     int64         // of all of them; 1 GiB
	StoredTime      time.Duration // that each is kept; 24 h

	HeaderTime  time.Duration // to send the headers; 5 s
	BodyTime    time.Duration // to send the body; 60 s
	WaitTime    time.Duration // that a body may wait for room; 10 s
	IdleTime    time.Duration // that a connection may rest between requests; 120 s
	RequestTime time.Duration // from the end of the body to the end of the answer; 600 s
	WriteTime   time.Duration // that one write may stall; 30 s
	PingTime    time.Duration // without an event after which a stream sends a comment; 10 s
	StepTime    time.Duration // without a step of the engine after which the server is not live; 30 s
	Drain       time.Duration // for running requests to end once the server shuts down; 30 s
}

// complete fills in defaults.
func (l Limits) complete() (Limits, error) {
	usual := api.DefaultLimits()
	fill(&l.BodyBytes, 32<<20)
	fill(&l.InFlightBytes, l.BodyBytes)
	fill(&l.HeaderBytes, 32<<10)
	fill(&l.Connections, 4096)
	fill(&l.Messages, usual.Messages)
	fill(&l.Prompts, usual.Prompts)
	fill(&l.Choices, usual.Choices)
	fill(&l.Stops, usual.Stops)
	fill(&l.StopBytes, usual.StopBytes)
	fill(&l.Biases, usual.Biases)
	fill(&l.CountTokens, countTokens)
	fill(&l.StoredResponses, 10_000)
	fill(&l.StoredBytes, 1<<30)
	fill(&l.StoredTime, 24*time.Hour)
	fill(&l.HeaderTime, 5*time.Second)
	fill(&l.BodyTime, 60*time.Second)
	fill(&l.WaitTime, 10*time.Second)
	fill(&l.IdleTime, 120*time.Second)
	fill(&l.RequestTime, 600*time.Second)
	fill(&l.WriteTime, 30*time.Second)
	fill(&l.PingTime, 10*time.Second)
	fill(&l.StepTime, 30*time.Second)
	fill(&l.Drain, 30*time.Second)
	least := min(l.BodyBytes, l.InFlightBytes, int64(l.HeaderBytes), int64(l.CountTokens), int64(l.WaitTime), int64(l.Connections), int64(l.Messages), int64(l.Prompts), int64(l.Choices),
		int64(l.Stops), int64(l.StopBytes), int64(l.Biases), int64(l.StoredResponses), l.StoredBytes, int64(l.StoredTime), int64(l.HeaderTime), int64(l.BodyTime), int64(l.IdleTime),
		int64(l.RequestTime), int64(l.WriteTime), int64(l.PingTime), int64(l.StepTime), int64(l.Drain))
	if least < 0 {
		return l, errors.New("server: a limit is negative (0 means its default)")
	}
	l.InFlightBytes = max(l.InFlightBytes, l.BodyBytes)
	return l, nil
}

// countTokens is the default of Limits.CountTokens for models whose context is not longer.
const countTokens = 262_144

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// request is what decoders need to know.
func (l Limits) request() api.Limits {
	limits := api.DefaultLimits()
	limits.Messages, limits.Prompts, limits.Choices = l.Messages, l.Prompts, l.Choices
	limits.Stops, limits.StopBytes, limits.Biases = l.Stops, l.StopBytes, l.Biases
	return limits
}
