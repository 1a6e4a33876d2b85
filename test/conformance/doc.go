// Package conformance holds Podstead against the lifecycle of a pod as the kubelet implements it, case by case: each row of the
// table in rows.go is a test on real containers, written as a pod file and a few assertions about who ran when.
//
// It owns that table and the page made of it, docs/conformance.md. It knows Podstead only as its users do: through the programs
// and the API. It must not wait for a time and then look: what is to happen is waited for, and what must not happen is ruled
// out by something that can only come after it.
package conformance
