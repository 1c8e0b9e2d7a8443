package weights

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/filetype"
)

// Limits of the files beside the weights.
const (
	maxTokenizerBytes = 256 << 20
	maxAssetBytes     = 16 << 20
)

// Assets is what belongs to a model besides weights and configuration: the texts of its files, nil where there is none.
// A byte order mark is left out, and lines of templates and merges end in \n alone.
type Assets struct {
	GenerationConfig []byte      // generation_config.json: sampling defaults and end tokens; of a GGUF file, what its general.sampling keys say
	Tokenizer        []byte      // tokenizer.json
	TokenizerConfig  []byte      // tokenizer_config.json
	SpecialTokensMap []byte      // special_tokens_map.json
	AddedTokens      []byte      // added_tokens.json
	Vocab            []byte      // vocab.json, where there is no tokenizer.json
	Merges           []byte      // merges.txt, where there is no tokenizer.json
	SentencePiece    []byte      // tokenizer.model of SentencePiece, where there is no tokenizer.json
	ChatTemplate     []byte      // chat_template.jinja, else the default of additional_chat_templates, or the template in a GGUF file
	ChatTemplateJSON []byte      // chat_template.json
	Preprocessor     []byte      // preprocessor_config.json: how images become patches
	Vocabulary       *Vocabulary // the tokenizer of a GGUF file
	Name             string      // that a GGUF file gives its model
}

// asset is a file and where its text goes.
type asset struct {
	name  string
	limit int64
	text  *[]byte
	read  func(path string, limit int64) ([]byte, error)
}

// readAssets reads the files that are there. Those that a tokenizer.json stands for are not looked at beside one.
func readAssets(folder string) (Assets, error) {
	var a Assets
	err := readAll(folder,
		asset{"generation_config.json", maxAssetBytes, &a.GenerationConfig, readText},
		asset{"tokenizer.json", maxTokenizerBytes, &a.Tokenizer, readText},
		asset{"tokenizer_config.json", maxAssetBytes, &a.TokenizerConfig, readText},
		asset{"special_tokens_map.json", maxAssetBytes, &a.SpecialTokensMap, readText},
		asset{"added_tokens.json", maxAssetBytes, &a.AddedTokens, readText},
		asset{"chat_template.jinja", maxAssetBytes, &a.ChatTemplate, readLines},
		asset{"chat_template.json", maxAssetBytes, &a.ChatTemplateJSON, readText},
		asset{"preprocessor_config.json", maxAssetBytes, &a.Preprocessor, readText},
	)
	if err == nil && a.ChatTemplate == nil {
		err = readAll(folder, asset{filepath.Join("additional_chat_templates", "default.jinja"), maxAssetBytes, &a.ChatTemplate, readLines})
	}
	if err == nil && a.Tokenizer == nil {
		err = readAll(folder,
			asset{"vocab.json", maxTokenizerBytes, &a.Vocab, readText},
			asset{"merges.txt", maxTokenizerBytes, &a.Merges, readLines},
			asset{"tokenizer.model", maxTokenizerBytes, &a.SentencePiece, readKnown},
		)
	}
	return a, err
}

func readAll(folder string, assets ...asset) error {
	for _, asset := range assets {
		text, err := asset.read(filepath.Join(folder, asset.name), asset.limit)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		*asset.text = text
	}
	return nil
}

// readText reads a text, without the byte order mark that some editors put first.
func readText(path string, limit int64) ([]byte, error) {
	text, err := readKnown(path, limit)
	return bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), err
}

// readLines is readText with lines that end in \n alone, as Python reads text. There may be no line.
func readLines(path string, limit int64) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() == 0 {
		return []byte{}, nil
	}
	text, err := readText(path, limit)
	return bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n")), err
}

// readKnown reads a whole file of at most limit bytes, and refuses what stands in the place of files. A link to a file that
// is not there is not an absent file: somebody meant to have it.
func readKnown(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		if _, linkErr := os.Readlink(path); linkErr == nil {
			err = errors.New(whyMissing(path, err).Error())
		}
		return nil, err
	}
	if !info.Mode().IsRegular() { // opening a named pipe would wait for a writer
		return nil, fmt.Errorf("%s is no regular file (%v)", path, info.Mode().Type())
	}
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
	if what := filetype.Describe(text[:min(filetype.BeginningBytes, len(text))]); what != "" {
		return nil, fmt.Errorf("%s is %s", path, what)
	}
	return text, nil
}
