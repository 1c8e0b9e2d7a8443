package metrics

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atlas-inference/atlas/atlasrt/internal/engine"
)

type source struct{ stats engine.Stats }

func (s *source) Stats() engine.Stats  { return s.stats }
func (s *source) Heartbeat() time.Time { return time.Now().Add(time.Hour) } // a clock that was set back

func scrape(m *Metrics) string {
	w := httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

func TestScrape(t *testing.T) {
	s := &source{engine.Stats{Running: 2, Waiting: 3, BlocksUsed: 1, BlocksFree: 3, BlocksTotal: 4, PromptTokens: 7, GeneratedTokens: 9, PrefixHits: 5, Preemptions: 6}}
	s.stats.Step.Counts[1], s.stats.Step.Counts[len(engine.Bounds)], s.stats.Step.Sum = 2, 1, 400.5
	s.stats.BlockTokens, s.stats.Sharing = 16, true
	s.stats.Rows.Counts[1], s.stats.Rows.Counts[len(engine.RowBounds)], s.stats.Rows.Sum = 2, 1, 20_014
	s.stats.Decode.Counts[slices.Index(engine.Bounds[:], .4)], s.stats.Decode.Sum = 1, .35
	s.stats.SlotsFree, s.stats.SlotsUsed, s.stats.SlotsTotal, s.stats.PrefixRecomputed = 11, 12, 23, 13
	s.stats.GraphFallbacks, s.stats.ReplayedPiecewise = 1, 8
	s.stats.ForcedTokens, s.stats.LateMasks, s.stats.Mask.Counts[1] = 14, 15, 16
	s.stats.Drafting, s.stats.Drafted, s.stats.Accepted, s.stats.SavedSeconds = 17, 34, 20, -0.5
	s.stats.MostDrafts, s.stats.AcceptedAt[0], s.stats.AcceptedAt[1] = 2, 12, 8
	m := New("tiny", s)
	m.FirstToken(30 * time.Millisecond)
	m.NextToken(20 * time.Millisecond)
	m.Finished(time.Second, 7, 5, 9)
	m.Admitted(3, 0)
	m.Choice(Stop)
	m.Cancelled(ClientGone)
	m.Rejected(QueueFull)
	m.UnknownFields(2)
	text := scrape(m)
	cases := []string{
		`vllm:num_requests_running{engine="0",model_name="tiny"} 2`,
		`vllm:num_requests_waiting{engine="0",model_name="tiny"} 3`,
		`vllm:kv_cache_usage_perc{engine="0",model_name="tiny"} 0.25`,
		`vllm:gpu_cache_usage_perc{engine="0",model_name="tiny"} 0.25`,
		`vllm:gpu_prefix_cache_hits_total{engine="0",model_name="tiny"} 5`,
		`vllm:cache_config_info{block_size="16",enable_prefix_caching="True",engine="0",model_name="tiny",num_gpu_blocks="4"} 1`,
		`vllm:iteration_tokens_total_bucket{engine="0",model_name="tiny",le="1"} 0`,
		`vllm:iteration_tokens_total_bucket{engine="0",model_name="tiny",le="16384"} 2`,
		`vllm:iteration_tokens_total_count{engine="0",model_name="tiny"} 3`,
		`vllm:iteration_tokens_total_sum{engine="0",model_name="tiny"} 20014`,
		`vllm:request_decode_time_seconds_bucket{engine="0",model_name="tiny",le="0.3"} 0`,
		`vllm:request_decode_time_seconds_bucket{engine="0",model_name="tiny",le="0.5"} 1`,
		`vllm:request_decode_time_seconds_bucket{engine="0",model_name="tiny",le="7680"} 1`,
		`vllm:request_inference_time_seconds_count{engine="0",model_name="tiny"} 0`,
		`vllm:request_time_per_output_token_seconds_bucket{engine="0",model_name="tiny",le="0.025"} 0`,
		`vllm:inter_token_latency_seconds_bucket{engine="0",model_name="tiny",le="0.025"} 1`,
		`vllm:time_per_output_token_seconds_bucket{engine="0",model_name="tiny",le="0.025"} 1`,
		`vllm:request_prefill_kv_computed_tokens_sum{engine="0",model_name="tiny"} 2`,
		`vllm:request_params_n_bucket{engine="0",model_name="tiny",le="5"} 1`,
		`vllm:prompt_tokens_total{engine="0",model_name="tiny"} 7`,
		`vllm:generation_tokens_total{engine="0",model_name="tiny"} 9`,
		`vllm:prefix_cache_hits_total{engine="0",model_name="tiny"} 5`,
		`vllm:num_preemptions_total{engine="0",model_name="tiny"} 6`,
		`vllm:time_to_first_token_seconds_bucket{engine="0",model_name="tiny",le="0.04"} 1`,
		`vllm:e2e_request_latency_seconds_count{engine="0",model_name="tiny"} 1`,
		`vllm:request_success_total{engine="0",finished_reason="stop",model_name="tiny"} 1`,
		`vllm:request_success_total{engine="0",finished_reason="abort",model_name="tiny"} 0`,
		`atlasrt_cancelled_total{cause="client_gone",engine="0",model_name="tiny"} 1`,
		`atlasrt_rejected_total{cause="queue_full",engine="0",model_name="tiny"} 1`,
		`atlasrt_unknown_fields_total{engine="0",model_name="tiny"} 2`,
		`atlasrt_state_slots_free{engine="0",model_name="tiny"} 11`,
		`atlasrt_state_slots_used{engine="0",model_name="tiny"} 12`,
		`atlasrt_state_slots_cached{engine="0",model_name="tiny"} 0`,
		`atlasrt_state_slots_total{engine="0",model_name="tiny"} 23`,
		`atlasrt_prefix_recomputed_total{engine="0",model_name="tiny"} 13`,
		`atlasrt_graph_fallbacks_total{engine="0",model_name="tiny"} 1`,
		`atlasrt_piecewise_replays_total{engine="0",model_name="tiny"} 8`,
		`atlasrt_forced_tokens_total{engine="0",model_name="tiny"} 14`,
		`atlasrt_late_masks_total{engine="0",model_name="tiny"} 15`,
		`vllm:spec_decode_num_drafts_total{engine="0",model_name="tiny"} 17`,
		`vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="tiny"} 34`,
		`vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="tiny"} 20`,
		`vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="tiny",position="0"} 12`,
		`vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="tiny",position="1"} 8`,
		`atlasrt_drafts_saved_seconds{engine="0",model_name="tiny"} -0.5`,
		`atlasrt_mask_seconds_bucket{engine="0",model_name="tiny",le="1e-05"} 0`,
		`atlasrt_mask_seconds_count{engine="0",model_name="tiny"} 16`,
		`atlasrt_step_seconds_bucket{engine="0",model_name="tiny",le="1e-05"} 0`,
		`atlasrt_step_seconds_bucket{engine="0",model_name="tiny",le="300"} 2`,
		`atlasrt_step_seconds_bucket{engine="0",model_name="tiny",le="+Inf"} 3`,
		`atlasrt_step_seconds_sum{engine="0",model_name="tiny"} 400.5`,
		`vllm:request_queue_time_seconds_count{engine="0",model_name="tiny"} 0`,
		`atlasrt_heartbeat_age_seconds{engine="0",model_name="tiny"} 0`,
	}
	for _, want := range cases {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("the scrape lacks %s", want)
		}
	}
}

// What the engine keeps has a bound wherever vLLM has one.
func TestBounds(t *testing.T) {
	for _, bound := range requestSeconds {
		if !slices.Contains(engine.Bounds[:], bound) {
			t.Errorf("the engine does not tell times above and below %v s apart", bound)
		}
	}
	if !slices.IsSorted(engine.Bounds[:]) || !slices.IsSorted(engine.RowBounds[:]) {
		t.Error("bounds are not in order")
	}
}

// An engine without a cache has no share of it in use.
func TestNoBlocks(t *testing.T) {
	if text := scrape(New("tiny", &source{})); !strings.Contains(text, "vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"tiny\"} 0\n") {
		t.Error("the usage of no blocks is not 0")
	}
}
