package main

import (
	"io"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/hub"
)

// downloadProgress draws a bar for each file that is fetched; nothing where the output is no terminal.
type downloadProgress struct {
	*mpb.Progress
	bars map[string]*mpb.Bar
}

func newDownloadProgress(w io.Writer) *downloadProgress {
	return &downloadProgress{mpb.New(mpb.WithOutput(w), mpb.WithAutoRefresh()), map[string]*mpb.Bar{}}
}

// Show moves the bar of a file.
func (d *downloadProgress) Show(p hub.Progress) {
	bar, ok := d.bars[p.File]
	if !ok {
		bar = d.AddBar(max(p.Total, 0), mpb.PrependDecorators(decor.Name(p.File+" ")), mpb.AppendDecorators(decor.CountersKibiByte("% .1f / % .1f")))
		d.bars[p.File] = bar
	}
	bar.SetCurrent(p.Done)
}

// Wait lets the last state be drawn; a file that did not finish keeps its bar.
func (d *downloadProgress) Wait() {
	for _, bar := range d.bars {
		if !bar.Completed() {
			bar.Abort(false)
		}
	}
	d.Progress.Wait()
}
