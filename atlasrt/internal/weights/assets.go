package weights

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Limits of the files beside the weights.
const (
	maxTokenizerBytes = 256 << 20
	maxAssetBytes     = 16 << 20
)

// Assets is what belongs to a model besides weights and configuration: the texts of its files, nil where there is none.
type Assets struct {
	GenerationConfig []byte // generation_config.json: sampling defaults and end tokens
	Tokenizer        []byte // tokenizer.json
	TokenizerConfig  []byte // tokenizer_config.json
	ChatTemplate     []byte // chat_template.jinja, or the template in a GGUF file
	QuantConfig      []byte // hf_quant_config.json: modelopt's settings, where config.json has none
	Preprocessor     []byte // preprocessor_config.json: how images become patches
	Vocabulary       *Vocabulary
}

// readAssets reads the files that are there.
func readAssets(folder string) (Assets, error) {
	var a Assets
	files := []struct {
		name  string
		limit int64
		text  *[]byte
	}{
		{"generation_config.json", maxAssetBytes, &a.GenerationConfig},
		{"tokenizer.json", maxTokenizerBytes, &a.Tokenizer},
		{"tokenizer_config.json", maxAssetBytes, &a.TokenizerConfig},
		{"chat_template.jinja", maxAssetBytes, &a.ChatTemplate},
		{"hf_quant_config.json", maxAssetBytes, &a.QuantConfig},
		{"preprocessor_config.json", maxAssetBytes, &a.Preprocessor},
	}
	for _, file := range files {
		text, err := readLimited(filepath.Join(folder, file.name), file.limit)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return Assets{}, err
		}
		*file.text = text
	}
	return a, nil
}

// readLimited reads a whole file of at most limit bytes.
func readLimited(path string, limit int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, limit)
	}
	return text, nil
}
