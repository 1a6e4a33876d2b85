package spec

// KubernetesVersion is the minor release of Kubernetes whose pod semantics Podstead follows, such as "1.36". Probes and hooks send it
// in their User-Agent, as the kubelet does, and `podstead version` prints it. The types of the API (k8s.io/api) may be newer.
const KubernetesVersion = "1.36"
