package instance

import (
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/load"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
)

// effectless are keys, or patterns of keys, that change nothing about what is computed here, by what they are for. Whatever
// is neither read nor listed is named at load.
var effectless = struct{ config, generation, tokenizer, metadata []string }{
	config: []string{
		"architectures", "torch_dtype", "dtype", "transformers_version", "_name_or_path", "name_or_path", "auto_map", "_commit_hash", "unsloth_*", "is_llama_config", // describe the file
		"initializer_range", "*_dropout", "*_pdrop", "gradient_checkpointing", "router_aux_loss_coef", "pretraining_tp", // for training
		"use_cache", "output_attentions", "output_hidden_states", "output_router_logits", "return_dict", "return_dict_in_generate", "torchscript",
		"attn_implementation", "_attn_implementation*", "use_flash_attn*", "chunk_size_feed_forward", "is_decoder", "tie_encoder_decoder", "transformers.js_config", // how a program runs it
		"use_mrope",                                                                       // turns text as without it
		"vision_config", "image_token_id", "video_token_id", "vision_*_token_id", "mtp_*", // of parts that are left out
		"bos_token_id", "eos_token_id", "pad_token_id", // read with the tokenizer
		"id2label", "label2id", "num_labels", "problem_type", // for other heads
		"quantization", "quantization_config.*", // the tensors that are there decide
		"rope_scaling.finetuned", "rope_parameters.finetuned", // says how the model came to be
	},
	generation: []string{"_from_model_config", "transformers_version", "bos_token_id", "pad_token_id", "decoder_start_token_id", "use_cache", "return_dict_in_generate",
		"_commit_hash", "cache_implementation", "cache_config", "max_length", "max_new_tokens", "output_*", "trust_remote_code", "chat_format", "max_window_size"},
	tokenizer: []string{
		"tokenizer_class", "processor_class", "model_max_length", "padding_side", "truncation_side", "legacy", "use_fast", "auto_map", "name_or_path",
		"sp_model_kwargs", "backend", "is_local", "added_tokens_decoder", "*_token", "additional_special_tokens", "model_specific_special_tokens",
		"extra_special_tokens", "chat_template", "add_prefix_space", // read with the tokenizer
		"clean_up_tokenization_spaces", "errors", "from_slow", "local_files_only", "model_input_names", "pad_to_multiple_of", "pad_token_type_id", "max_length", "stride",
		"truncation*", "return_token_type_ids", "spaces_between_special_tokens", "special_tokens_map_file", "tokenizer_file", "tokenizer_type", "transformers_version",
		"trust_remote_code", "use_default_system_prompt", "vocab_file", "vocab_size", "response_schema", "response_template", // of other programs and tasks
	},
	metadata: []string{
		"general.[^s]*", "general.s[^a]*", "quantize.*", "split.*", // describe the file; general.sampling does not
		"tokenizer.ggml.model", "tokenizer.ggml.pre", "tokenizer.ggml.tokens", "tokenizer.ggml.token_type", "tokenizer.ggml.merges", "tokenizer.ggml.scores",
		"tokenizer.ggml.add_bos_token", "tokenizer.ggml.add_eos_token", "tokenizer.ggml.add_space_prefix", "tokenizer.chat_template", // read with the tokenizer
		"tokenizer.ggml.fim_*_token_id", "tokenizer.ggml.prefix_token_id", "tokenizer.ggml.suffix_token_id", "tokenizer.ggml.middle_token_id", // for filling in the middle
		"tokenizer.ggml.precompiled_charsmap", "tokenizer.ggml.remove_extra_whitespaces", // of other kinds of tokenizers
		"*.vocab_size", "*.rope.scaling.finetuned", "*.tensor_data_layout", // the embedding has as many rows; says how the model came to be; llama.cpp writes one layout
		"*.rope.dimension_sections",                                                                     // of time, height and width, which are one for text
		"tokenizer.huggingface.json", "tokenizer.ggml.token_type_count", "tokenizer.ggml.add_sep_token", // for encoders
	},
}

// Assumed says, in a line for each file, what was taken for granted about the settings.
func (p *Prepared) Assumed() []string {
	config := p.Checkpoint.Config()
	assumed := config.Assumed()
	if len(assumed) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: assumed: %s", filepath.Base(config.File()), strings.Join(assumed, "; "))}
}

// Unread says which keys of the model's settings nothing here uses and nothing says why, and which parts of the checkpoint are left out.
func (p *Prepared) Unread() []string {
	config, known := p.Checkpoint.Config(), effectless.config
	if config.Translated() {
		known = effectless.metadata
	}
	return unread(weights.LeftOut(p.Checkpoint, p.asides()), filepath.Base(config.File()), config.Unread(), known)
}

// Quantised says what a user should know of how weights are stored: where the configuration is wrong about it, and what of it has no effect.
func (p *Prepared) Quantised() []string {
	return slices.Concat(p.Counter.Otherwise(), load.Notes(p.Checkpoint))
}

// unreadAssets says the same of the files beside the settings, in a line for each.
func unreadAssets(assets weights.Assets) []string {
	generation := []string{"eos_token_id"}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Defaults]()) {
		generation = append(generation, field.Tag.Get("json"))
	}
	lines := unread(nil, generationFile, keys(assets.GenerationConfig), append(generation, effectless.generation...))
	tokenizer := slices.DeleteFunc(keys(assets.TokenizerConfig), func(key string) bool { return key == splitSpecial && isFalse(assets.TokenizerConfig, key) })
	return unread(lines, "tokenizer_config.json", tokenizer, effectless.tokenizer)
}

// splitSpecial is a switch that has no effect here, and that published files turn off.
const splitSpecial = "split_special_tokens"

// isFalse reports whether a key of a JSON object, which can be read, is false.
func isFalse(text []byte, key string) bool {
	var values map[string]any
	return json.Unmarshal(text, &values) == nil && values[key] == false
}

// keys lists the keys of a JSON object; one that cannot be read has none here, and an error where it is used.
func keys(text []byte) []string {
	if text == nil {
		return nil
	}
	config, err := weights.ParseConfig("", text)
	if err != nil {
		return nil
	}
	return config.Keys()
}

// maxListed bounds the keys of a line: a file may have a million.
const maxListed = 20

// unread appends a line with the keys of a file that match no pattern.
func unread(lines []string, file string, all, patterns []string) []string {
	var left []string
	for _, key := range all {
		known := slices.ContainsFunc(patterns, func(pattern string) bool {
			ok, _ := path.Match(pattern, strings.ReplaceAll(key, "/", "_"))
			return ok
		})
		if !known {
			left = append(left, fmt.Sprintf("%.60s", key))
		}
	}
	if len(left) == 0 {
		return lines
	}
	return append(lines, fmt.Sprintf("%s: keys with no effect here: %s", file, weights.Listed(left, maxListed)))
}
