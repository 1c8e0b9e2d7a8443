package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
)

// Source is what is asked at each scrape; *engine.Engine is one.
type Source interface {
	Stats() engine.Stats
	Heartbeat() time.Time
}

// collector turns a snapshot of an engine into samples.
type collector struct {
	source  Source
	samples []sample
}

// sample is one metric and how to read it.
type sample struct {
	description *prometheus.Desc
	kind        prometheus.ValueType
	value       func(engine.Stats) float64
}

func newCollector(source Source, labels prometheus.Labels) *collector {
	c := &collector{source: source}
	add := func(kind prometheus.ValueType, name, help string, value func(engine.Stats) float64) {
		c.samples = append(c.samples, sample{prometheus.NewDesc(name, help, nil, labels), kind, value})
	}
	gauge := func(name, help string, value func(engine.Stats) float64) {
		add(prometheus.GaugeValue, name, help, value)
	}
	counter := func(name, help string, value func(engine.Stats) float64) {
		add(prometheus.CounterValue, name+"_total", help, value)
	}
	gauge("vllm:num_requests_running", "Requests that compute.", func(s engine.Stats) float64 { return float64(s.Running) })
	gauge("vllm:num_requests_waiting", "Requests that wait.", func(s engine.Stats) float64 { return float64(s.Waiting) })
	gauge("vllm:kv_cache_usage_perc", "Share of cache blocks that running requests hold, from 0 to 1.", usage)
	counter("vllm:prefix_cache_queries", "Prompt tokens looked up in the prefix cache.", func(s engine.Stats) float64 { return float64(s.PrefixQueries) })
	counter("vllm:prefix_cache_hits", "Prompt tokens found in the prefix cache.", func(s engine.Stats) float64 { return float64(s.PrefixHits) })
	counter("vllm:num_preemptions", "Times that a request gave its cache blocks up.", func(s engine.Stats) float64 { return float64(s.Preemptions) })
	counter("vllm:prompt_tokens", "Prompt tokens computed or found in the cache.", func(s engine.Stats) float64 { return float64(s.PromptTokens) })
	counter("vllm:generation_tokens", "Tokens generated.", func(s engine.Stats) float64 { return float64(s.GeneratedTokens) })

	gauge("atlasrt_queue_tokens", "Prompt tokens of waiting requests.", func(s engine.Stats) float64 { return float64(s.WaitingTokens) })
	gauge("atlasrt_blocks_free", "Cache blocks that hold nothing.", func(s engine.Stats) float64 { return float64(s.BlocksFree) })
	gauge("atlasrt_blocks_used", "Cache blocks that running requests hold.", func(s engine.Stats) float64 { return float64(s.BlocksUsed) })
	gauge("atlasrt_blocks_cached", "Cache blocks kept for prompts to come.", func(s engine.Stats) float64 { return float64(s.BlocksCached) })
	gauge("atlasrt_blocks_total", "Cache blocks.", func(s engine.Stats) float64 { return float64(s.BlocksTotal) })
	counter("atlasrt_steps", "Steps of the engine.", func(s engine.Stats) float64 { return float64(s.Steps) })
	counter("atlasrt_decode_steps", "Steps that only decoded.", func(s engine.Stats) float64 { return float64(s.DecodeSteps) })
	counter("atlasrt_failed_steps", "Steps that failed.", func(s engine.Stats) float64 { return float64(s.FailedSteps) })
	counter("atlasrt_sequences_finished", "Sequences that ended by themselves.", func(s engine.Stats) float64 { return float64(s.Finished) })
	counter("atlasrt_sequences_cancelled", "Sequences that were cancelled.", func(s engine.Stats) float64 { return float64(s.Cancelled) })
	counter("atlasrt_sequences_failed", "Sequences that failed.", func(s engine.Stats) float64 { return float64(s.Failed) })
	counter("atlasrt_decode_host_seconds", "Time between decode steps that the host took.", func(s engine.Stats) float64 {
		return float64(s.DecodeHostNanoseconds) / 1e9
	})
	gauge("atlasrt_heartbeat_age_seconds", "Since the engine last began a step; 0 while it has nothing to do.", func(engine.Stats) float64 {
		return max(time.Since(source.Heartbeat()).Seconds(), 0)
	})
	return c
}

func usage(s engine.Stats) float64 {
	if s.BlocksTotal == 0 {
		return 0
	}
	return float64(s.BlocksUsed) / float64(s.BlocksTotal)
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, s := range c.samples {
		descriptions <- s.description
	}
}

// Collect implements prometheus.Collector: all samples of a scrape come from one snapshot.
func (c *collector) Collect(metrics chan<- prometheus.Metric) {
	stats := c.source.Stats()
	for _, s := range c.samples {
		metrics <- prometheus.MustNewConstMetric(s.description, s.kind, s.value(stats))
	}
}
