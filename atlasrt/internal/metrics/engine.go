package metrics

import (
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
)

// Source is asked at each scrape. *engine.Engine is one: see its methods.
type Source interface {
	// See the methods of *engine.Engine.
	Stats() engine.Stats
	Heartbeat() time.Time
}

// collector turns a snapshot of an engine into samples.
type collector struct {
	source     Source
	samples    []sample
	histograms []histogram
	accepted   *prometheus.Desc
	rows       *prometheus.Desc
	cache      *prometheus.Desc
}

// histogram is a distribution that the engine keeps: how to read it, and which of its bounds are exported.
type histogram struct {
	description *prometheus.Desc
	value       func(*engine.Stats) *engine.Histogram
	bounds      []float64 // among engine.Bounds
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
	for _, name := range []string{"vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"} { // the second is the older one
		gauge(name, "Share of cache blocks that running requests hold, from 0 to 1.", usage)
	}
	for _, prefix := range []string{"vllm:", "vllm:gpu_"} {
		counter(prefix+"prefix_cache_queries", "Prompt tokens looked up in the prefix cache.", func(s engine.Stats) float64 { return float64(s.PrefixQueries) })
		counter(prefix+"prefix_cache_hits", "Prompt tokens taken from the prefix cache.", func(s engine.Stats) float64 { return float64(s.PrefixHits) })
	}
	counter("vllm:num_preemptions", "Times that a request gave its cache blocks and its state up.", func(s engine.Stats) float64 { return float64(s.Preemptions) })
	counter("vllm:prompt_tokens", "Prompt tokens computed or found in the cache.", func(s engine.Stats) float64 { return float64(s.PromptTokens) })
	counter("vllm:generation_tokens", "Tokens generated.", func(s engine.Stats) float64 { return float64(s.GeneratedTokens) })

	gauge("atlasrt_queue_tokens", "Prompt tokens of waiting requests.", func(s engine.Stats) float64 { return float64(s.WaitingTokens) })
	gauge("atlasrt_blocks_free", "Cache blocks that hold nothing.", func(s engine.Stats) float64 { return float64(s.BlocksFree) })
	gauge("atlasrt_blocks_used", "Cache blocks that running requests hold.", func(s engine.Stats) float64 { return float64(s.BlocksUsed) })
	gauge("atlasrt_blocks_cached", "Cache blocks kept for prompts to come.", func(s engine.Stats) float64 { return float64(s.BlocksCached) })
	gauge("atlasrt_blocks_total", "Cache blocks.", func(s engine.Stats) float64 { return float64(s.BlocksTotal) })
	gauge("atlasrt_state_slots_free", "Slots for the state of a sequence that hold nothing.", func(s engine.Stats) float64 { return float64(s.SlotsFree) })
	gauge("atlasrt_state_slots_used", "Slots that running requests hold.", func(s engine.Stats) float64 { return float64(s.SlotsUsed) })
	gauge("atlasrt_state_slots_cached", "Slots kept for prompts to come.", func(s engine.Stats) float64 { return float64(s.SlotsCached) })
	gauge("atlasrt_state_slots_total", "Slots; none where the model keeps no state of sequences.", func(s engine.Stats) float64 { return float64(s.SlotsTotal) })
	counter("atlasrt_prefix_recomputed", "Prompt tokens found in the prefix cache and computed again, because the state behind them is not kept.", func(s engine.Stats) float64 { return float64(s.PrefixRecomputed) })
	counter("atlasrt_steps", "Steps of the engine.", func(s engine.Stats) float64 { return float64(s.Steps) })
	counter("atlasrt_decode_steps", "Steps that only decoded.", func(s engine.Stats) float64 { return float64(s.DecodeSteps) })
	counter("atlasrt_failed_steps", "Steps that failed.", func(s engine.Stats) float64 { return float64(s.FailedSteps) })
	counter("atlasrt_sequences_finished", "Sequences that ended by themselves.", func(s engine.Stats) float64 { return float64(s.Finished) })
	counter("atlasrt_sequences_cancelled", "Sequences that were cancelled.", func(s engine.Stats) float64 { return float64(s.Cancelled) })
	counter("atlasrt_sequences_failed", "Sequences that failed.", func(s engine.Stats) float64 { return float64(s.Failed) })
	counter("atlasrt_graph_captures", "Steps that were recorded.", func(s engine.Stats) float64 { return float64(s.GraphCaptures) })
	counter("atlasrt_graph_fallbacks", "Times that recording a step failed and a weaker mode took over.", func(s engine.Stats) float64 { return float64(s.GraphFallbacks) })
	counter("atlasrt_full_replays", "Steps that were replayed whole.", func(s engine.Stats) float64 { return float64(s.ReplayedFull) })
	counter("atlasrt_piecewise_replays", "Steps that were replayed in pieces.", func(s engine.Stats) float64 { return float64(s.ReplayedPiecewise) })
	counter("atlasrt_forced_tokens", "Tokens that a grammar left no choice for, and that were not drawn.", func(s engine.Stats) float64 { return float64(s.ForcedTokens) })
	counter("vllm:spec_decode_num_drafts", "Times that a step computed drafts of a request.", func(s engine.Stats) float64 { return float64(s.Drafting) })
	counter("vllm:spec_decode_num_draft_tokens", "Drafts that steps computed.", func(s engine.Stats) float64 { return float64(s.Drafted) })
	counter("vllm:spec_decode_num_accepted_tokens", "Drafts that were right; with one more for each time, the tokens that came of them.", func(s engine.Stats) float64 { return float64(s.Accepted) })
	gauge("atlasrt_drafts_saved_seconds", "Time that drafts saved, estimated from steps without drafts; negative where they cost more than they gave.", func(s engine.Stats) float64 { return s.SavedSeconds })
	counter("atlasrt_late_masks", "Draws that were put off because the mask of their grammar took long.", func(s engine.Stats) float64 { return float64(s.LateMasks) })
	times := func(name, help string, bounds []float64, value func(*engine.Stats) *engine.Histogram) {
		c.histograms = append(c.histograms, histogram{prometheus.NewDesc(name, help, nil, labels), value, bounds})
	}
	times("vllm:request_queue_time_seconds", "From a request's arrival in the engine to its first step.", requestSeconds, func(s *engine.Stats) *engine.Histogram { return &s.Queue })
	times("vllm:request_prefill_time_seconds", "From a request's first step to its first token.", requestSeconds, func(s *engine.Stats) *engine.Histogram { return &s.Prefill })
	times("vllm:request_decode_time_seconds", "From a request's first token to its end.", requestSeconds, func(s *engine.Stats) *engine.Histogram { return &s.Decode })
	times("vllm:request_inference_time_seconds", "From a request's first step to its end.", requestSeconds, func(s *engine.Stats) *engine.Histogram { return &s.Inference })
	times("vllm:request_time_per_output_token_seconds", "Mean time of a request's tokens behind the first.", engine.Bounds[:], func(s *engine.Stats) *engine.Histogram { return &s.PerToken })
	times("atlasrt_first_token_seconds", "From a request's arrival in the engine to its first token.", engine.Bounds[:], func(s *engine.Stats) *engine.Histogram { return &s.FirstToken })
	times("atlasrt_step_seconds", "One step of the engine, from its launch or the end of the one before.", engine.Bounds[:], func(s *engine.Stats) *engine.Histogram { return &s.Step })
	times("atlasrt_step_host_seconds", "From reading the tokens of a decode step to having launched the next.", engine.Bounds[:], func(s *engine.Stats) *engine.Histogram { return &s.Host })
	times("atlasrt_mask_seconds", "Making the mask of tokens that a grammar allows.", engine.Bounds[:], func(s *engine.Stats) *engine.Histogram { return &s.Mask })
	c.accepted = prometheus.NewDesc("vllm:spec_decode_num_accepted_tokens_per_pos_total", "Drafts that were right, by their place among those of a step, from 0.", []string{"position"}, labels)
	c.rows = prometheus.NewDesc("vllm:iteration_tokens_total", "Tokens of one step of the engine.", nil, labels)
	c.cache = prometheus.NewDesc("vllm:cache_config_info", "How the cache is made; the value is 1.", []string{"block_size", "num_gpu_blocks", "enable_prefix_caching"}, labels)
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
	for _, h := range c.histograms {
		descriptions <- h.description
	}
	descriptions <- c.accepted
	descriptions <- c.rows
	descriptions <- c.cache
}

// Collect implements prometheus.Collector: all samples of a scrape come from one snapshot.
func (c *collector) Collect(metrics chan<- prometheus.Metric) {
	stats := c.source.Stats()
	for _, s := range c.samples {
		metrics <- prometheus.MustNewConstMetric(s.description, s.kind, s.value(stats))
	}
	for _, h := range c.histograms {
		value := h.value(&stats)
		buckets, below := make(map[float64]uint64, len(h.bounds)), uint64(0)
		for i, bound := range engine.Bounds {
			below += value.Counts[i]
			if slices.Contains(h.bounds, bound) {
				buckets[bound] = below
			}
		}
		metrics <- prometheus.MustNewConstHistogram(h.description, value.Count(), value.Sum, buckets)
	}
	for i, n := range stats.AcceptedAt[:stats.MostDrafts] {
		metrics <- prometheus.MustNewConstMetric(c.accepted, prometheus.CounterValue, float64(n), strconv.Itoa(i))
	}
	buckets, below := make(map[float64]uint64, len(engine.RowBounds)), uint64(0)
	for i, bound := range engine.RowBounds {
		below += stats.Rows.Counts[i]
		buckets[float64(bound)] = below
	}
	metrics <- prometheus.MustNewConstHistogram(c.rows, below+stats.Rows.Counts[len(engine.RowBounds)], float64(stats.Rows.Sum), buckets)
	sharing := "False" // as vLLM writes it
	if stats.Sharing {
		sharing = "True"
	}
	metrics <- prometheus.MustNewConstMetric(c.cache, prometheus.GaugeValue, 1, strconv.Itoa(stats.BlockTokens), strconv.Itoa(stats.BlocksTotal), sharing)
}
