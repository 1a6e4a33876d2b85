// Package filewatch notices which files have changed, for podstead up --watch. It compares what files are, not what the kernel reports:
// an editor that replaces a file, writes it twice or leaves a temporary file next to it causes one change, or none. It does not read
// files, and knows nothing of pods.
package filewatch
