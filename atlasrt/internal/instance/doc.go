// Package instance brings a model to life: it opens a checkpoint, picks the kernels for this machine, plans memory before
// anything is loaded, and starts an engine. Commands differ only in what they do with the result.
package instance
