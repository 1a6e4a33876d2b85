// Package spec is the pod file: its types, its strict decoding, its defaults
// and every check of it.
//
// One file describes one pod. Names, nesting, defaults and meanings are those
// of the Kubernetes Pod API (v1) with metadata and spec flattened into the top
// level. [Parse] reads TOML and, for .yaml and .json files, a Pod manifest. It
// reports all problems of a file at once, each with line and column, and
// returns a pod only if there is no error among them: whoever holds a [Pod]
// from Parse may rely on it being valid, with every default filled in and
// every relative path resolved.
//
// The package owns the vocabulary that everything above it shares. It imports
// nothing of Podstead, keeps no state, starts no goroutine, and reads no file
// but the one that [ParseFile] is given.
package spec
