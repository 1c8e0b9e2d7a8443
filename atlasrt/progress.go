package main

import (
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/cwriter"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/hub"
	"github.com/atlas-inference/atlas/internal/table"
)

// progress draws bars on a terminal, and nothing elsewhere: one for each thing that is fetched, loaded or measured, by its name.
type progress struct {
	*mpb.Progress
	bars map[string]*mpb.Bar
}

func newProgress(to *os.File) *progress {
	var w io.Writer = to
	if !cwriter.IsTerminal(int(to.Fd())) {
		w = io.Discard
	}
	return &progress{mpb.New(mpb.WithOutput(w)), map[string]*mpb.Bar{}}
}

// bar is the bar of that name, made when it is first asked for.
func (p *progress) bar(name string, total int64, options ...mpb.BarOption) *mpb.Bar {
	bar, ok := p.bars[name]
	if !ok {
		bar = p.AddBar(max(total, 0), append(options, mpb.PrependDecorators(decor.Name(name+" ")))...)
		p.bars[name] = bar
	}
	return bar
}

// Fetched moves the bar of a file that is fetched.
func (p *progress) Fetched(f hub.Progress) {
	p.bar(f.File, f.Total, mpb.AppendDecorators(decor.CountersKibiByte("% .1f / % .1f"))).SetCurrent(f.Done)
}

// Loaded moves the bar of a model's weights, which goes when they are there.
func (p *progress) Loaded(done, total int64) {
	p.bar("loading", total, mpb.BarRemoveOnComplete(), mpb.AppendDecorators(
		decor.CountersKibiByte("% .1f / % .1f"), decor.Name(", "), decor.AverageETA(decor.ET_STYLE_GO), decor.Name(" left"))).SetCurrent(done)
}

// Steps gives a function that begins the next of so many steps, and says which. It is drawn until Wait.
func (p *progress) Steps(total int) (begin func(what string)) {
	var what atomic.Value
	what.Store("")
	name := decor.Any(func(decor.Statistics) string { return what.Load().(string) + " " })
	start := time.Now()
	left := decor.Any(func(s decor.Statistics) string { return stepsLeft(time.Since(start), s.Current, s.Total) })
	bar := p.AddBar(int64(total), mpb.BarRemoveOnComplete(), mpb.PrependDecorators(name), mpb.AppendDecorators(decor.CountersNoUnit("%d of %d done"), left))
	p.bars["steps"] = bar
	begun := int64(0)
	return func(next string) {
		bar.SetCurrent(begun)
		what.Store(next)
		begun++
	}
}

// stepsLeft says how long the steps that are left may take; nothing before one is done.
func stepsLeft(elapsed time.Duration, done, total int64) string {
	if done <= 0 || done >= total {
		return ""
	}
	return ", about " + (elapsed * time.Duration(total-done) / time.Duration(done)).Round(time.Second).String() + " left"
}

// Cases gives a function that says which of many cases begins.
func (p *progress) Cases() func(done, total int, op, name string) {
	var begin func(string)
	return func(_, total int, op, name string) {
		if begin == nil {
			begin = p.Steps(total)
		}
		begin(table.Cut(op+" "+name, caseColumns))
	}
}

// caseColumns is how much of a case's name stands beside its bar.
const caseColumns = 36

// Wait lets the last state be drawn; a file that did not finish keeps its bar.
func (p *progress) Wait() {
	for name, bar := range p.bars {
		if !bar.Completed() {
			bar.Abort(name == "steps")
		}
	}
	p.Progress.Wait()
}

// progressEvery is how often a log says how far long work is.
const progressEvery = 2 * time.Second

// logProgress logs how far loading is, where it takes long.
func logProgress(log *slog.Logger) func(done, total int64) {
	start := time.Now()
	last := start
	return func(done, total int64) {
		now := time.Now()
		if now.Sub(last) < progressEvery || done <= 0 || done >= total {
			return
		}
		last = now
		share := float64(done) / float64(total)
		log.Info("loading weights", "percent", int(100*share), "seconds_left", int(now.Sub(start).Seconds()*(1-share)/share+0.5), "total", formatBytes(total))
	}
}
