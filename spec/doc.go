// Package spec defines the pod file: its types, strict decoding, defaults and
// validation.
//
// One file describes one pod. Names, nesting, defaults and meanings are those
// of the Kubernetes Pod API (v1) with metadata and spec flattened into the top
// level. [Parse] reads TOML and, for .yaml, .yml and .json files, a Pod
// manifest. It reports all problems of a file at once, each with line and
// column. It returns a pod only if none of them is an error, so a [Pod] from
// Parse is valid, has all defaults and only absolute paths.
//
// All other packages share these types. The package imports no other package of
// Podstead, keeps no state and starts no goroutine. The only files that it reads
// are the argument of [ParseFile] and, in [Accept], the env files of the pod.
package spec
