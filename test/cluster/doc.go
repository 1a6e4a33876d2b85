// Package cluster holds Podstead against Kubernetes: it starts a real API server, and has it and package spec judge the same pods, of which
// docs/validation.md is generated. It also applies the manifests that "podstead convert -o k8s" prints, and runs pods of them with a real
// scheduler and kubelet, in a virtual machine of package vm.
//
// It owns the list of known differences. A difference that is not in the list, and a row of the list that does not occur, fail the test.
// The programs of Kubernetes are built from public Go modules by the script build. The tests run in "make cluster" and "make soak", and
// TestKubelet in "make kubelet".
package cluster
