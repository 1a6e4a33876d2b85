// Package conformance tests Podstead against the pod lifecycle of the kubelet. Each row of the table in rows.go is a test on real
// containers: a pod file, and assertions about the order in which containers ran.
//
// It owns the table and docs/conformance.md, which is generated from it. It uses Podstead through the programs and the API only. It must
// not wait for a fixed time: it awaits what must happen, and rules out what must not happen by an event that can only follow it.
package conformance
