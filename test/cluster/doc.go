// Package cluster holds the validation of pods against that of Kubernetes: it starts a real API server, and has it and package spec judge
// the same pods. docs/validation.md is generated from the result.
//
// It owns the list of known differences. A difference that is not in the list, and a row of the list that does not occur, fail the test.
// The programs of the API server are built from public Go modules by the script build. The test runs in "make soak".
package cluster
