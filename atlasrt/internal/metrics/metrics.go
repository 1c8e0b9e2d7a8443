// Package metrics counts what the server does, in the Prometheus format.
//
// Names that begin with vllm: mean what they mean in vLLM, so that dashboards and autoscalers made for it work here; other names begin
// with atlasrt_. No label value comes from a client, so that clients cannot make new series. The values of every label are known when the
// program is built, except the model's name, which the operator chose.
package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Cause is why a request ended early or never began.
type Cause string

// Causes of cancelled requests.
const (
	ClientGone   Cause = "client_gone"   // the client closed its connection
	WriteStalled Cause = "write_stalled" // the client took no bytes for too long
	Deadline     Cause = "deadline"      // the request's time was over
	Shutdown     Cause = "shutdown"      // the server ended
)

// Causes of rejected requests.
const (
	Invalid      Cause = "invalid"      // the request is wrong or not served
	Unauthorized Cause = "unauthorized" // the key is missing or wrong
	NotFound     Cause = "not_found"    // no such route or model
	QueueFull    Cause = "queue_full"   // too much waits already
	Draining     Cause = "draining"     // the server ends and takes no more
	EngineError  Cause = "engine_error" // a step failed
	Panic        Cause = "panic"        // a fault of the program
)

// Reasons why an answer ended, for Choice.
const (
	Stop   = "stop"   // an end token or a stop string
	Length = "length" // max_tokens, or the context
	Abort  = "abort"  // it was cancelled or failed
)

// Metrics counts for one served model. Its methods may be called from any goroutine.
type Metrics struct {
	handler http.Handler

	firstToken, endToEnd         prometheus.Histogram
	interToken                   [2]prometheus.Histogram // the same times under two names, of which one is older
	prompt, generation, computed prometheus.Histogram
	choices, maxTokens           prometheus.Histogram
	finished                     *prometheus.CounterVec
	cancelled, rejected, limits  *prometheus.CounterVec
	unknown                      prometheus.Counter
}

// Bounds of histograms: vLLM's, and for times between tokens some that are smaller.
var (
	firstSeconds   = []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
	tokenSeconds   = []float64{.001, .0025, .005, .01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	requestSeconds = []float64{.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
	tokenCounts    = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000}
	fewCounts      = []float64{1, 2, 5, 10, 20}
)

// New makes the metrics of one served model, whose engine is asked at each scrape.
func New(model string, engine Source) *Metrics {
	labels := prometheus.Labels{"model_name": model, "engine": "0"}
	registry := prometheus.NewRegistry()
	histogram := func(name, help string, bounds []float64) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: bounds, ConstLabels: labels})
		registry.MustRegister(h)
		return h
	}
	counters := func(name, help, label string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels}, []string{label})
		registry.MustRegister(c)
		return c
	}
	m := &Metrics{
		firstToken: histogram("vllm:time_to_first_token_seconds", "From a request's arrival to its first token.", firstSeconds),
		interToken: [2]prometheus.Histogram{
			histogram("vllm:inter_token_latency_seconds", "Between pieces of one answer.", tokenSeconds),
			histogram("vllm:time_per_output_token_seconds", "The same as vllm:inter_token_latency_seconds.", tokenSeconds),
		},
		endToEnd:   histogram("vllm:e2e_request_latency_seconds", "From a request's arrival to the end of its answer.", requestSeconds),
		prompt:     histogram("vllm:request_prompt_tokens", "Prompt tokens of a request.", tokenCounts),
		generation: histogram("vllm:request_generation_tokens", "Generated tokens of a request.", tokenCounts),
		computed:   histogram("vllm:request_prefill_kv_computed_tokens", "Prompt tokens of a request that were not found in the cache.", tokenCounts),
		choices:    histogram("vllm:request_params_n", "Answers asked for to one prompt.", fewCounts),
		maxTokens:  histogram("vllm:request_params_max_tokens", "The max_tokens of requests that have one.", tokenCounts),
		finished:   counters("vllm:request_success_total", "Answers that ended, by reason.", "finished_reason"),
		cancelled:  counters("atlasrt_cancelled_total", "Requests that ended early.", "cause"),
		rejected:   counters("atlasrt_rejected_total", "Requests that were refused or failed.", "cause"),
		limits:     counters("atlasrt_limits_hit_total", "Requests that went over a limit.", "limit"),
		unknown: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "atlasrt_unknown_fields_total", Help: "Request fields that are not known and were ignored.", ConstLabels: labels}),
	}
	for _, reason := range []string{Stop, Length, Abort} {
		m.finished.WithLabelValues(reason)
	}
	for _, cause := range []Cause{ClientGone, WriteStalled, Deadline, Shutdown} {
		m.cancelled.WithLabelValues(string(cause))
	}
	for _, cause := range []Cause{Invalid, Unauthorized, NotFound, QueueFull, Draining, EngineError, Panic} {
		m.rejected.WithLabelValues(string(cause))
	}
	registry.MustRegister(m.unknown, newCollector(engine, labels), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.handler = promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	return m
}

// ServeHTTP answers a scrape.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) { m.handler.ServeHTTP(w, r) }

// Admitted counts a request that may begin: how many answers it wants to each prompt, and its max_tokens, 0 where it has none.
func (m *Metrics) Admitted(choices, maxTokens int) {
	m.choices.Observe(float64(choices))
	if maxTokens > 0 {
		m.maxTokens.Observe(float64(maxTokens))
	}
}

// FirstToken counts the time to the first token of a request.
func (m *Metrics) FirstToken(d time.Duration) { m.firstToken.Observe(d.Seconds()) }

// NextToken counts the time between two pieces of one answer.
func (m *Metrics) NextToken(d time.Duration) {
	for _, h := range m.interToken {
		h.Observe(d.Seconds())
	}
}

// Choice counts an answer that ended, by Stop, Length or Abort.
func (m *Metrics) Choice(reason string) { m.finished.WithLabelValues(reason).Inc() }

// Finished counts a request that was answered to its end: tokens of its prompt, those of them that were found in the cache, and tokens
// generated.
func (m *Metrics) Finished(d time.Duration, prompt, cached, generated int) {
	m.computed.Observe(float64(max(prompt-cached, 0)))
	m.endToEnd.Observe(d.Seconds())
	m.prompt.Observe(float64(prompt))
	m.generation.Observe(float64(generated))
}

// Cancelled counts a request that ended early.
func (m *Metrics) Cancelled(cause Cause) { m.cancelled.WithLabelValues(string(cause)).Inc() }

// Rejected counts a request that was refused or failed.
func (m *Metrics) Rejected(cause Cause) { m.rejected.WithLabelValues(string(cause)).Inc() }

// LimitHit counts a request that went over a limit. The name must come from a fixed set.
func (m *Metrics) LimitHit(limit string) { m.limits.WithLabelValues(limit).Inc() }

// UnknownFields counts request fields that were ignored.
func (m *Metrics) UnknownFields(n int) { m.unknown.Add(float64(n)) }
