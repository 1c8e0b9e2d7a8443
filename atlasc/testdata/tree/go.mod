module github.com/atlas-inference/atlas

go 1.26.0
