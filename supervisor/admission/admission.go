// Package admission says what a machine lets pods ask for: a level of the Pod Security Standards, the folders below which
// hostPath volumes may lie, and the kernel parameters beyond the safe ones.
//
// It is pure: it looks at the definition of a pod and at nothing else, so that a definition has one answer. What only the
// machine can tell, such as where a symbolic link leads, is looked at where the thing is used (package volume). It decides
// about a pod that comes; one that runs is let alone, whatever the policy has become.
package admission

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Level is a level of the Pod Security Standards. The empty one is [Privileged].
type Level string

// The levels, each with all that the one before it asks for.
const (
	Privileged Level = "privileged" // asks for nothing
	Baseline   Level = "baseline"   // no known way out of a container
	Restricted Level = "restricted" // what is held good practice for a container
)

// Levels are all levels, the mildest first.
func Levels() []string { return []string{string(Privileged), string(Baseline), string(Restricted)} }

// Policy is what a machine lets pods ask for. The zero value asks for no level, lets hostPath volumes lie anywhere, and
// allows the safe kernel parameters only.
type Policy struct {
	PodSecurity Level `json:"podSecurity,omitempty"`
	// HostPaths are absolute folders below which hostPath volumes may lie. Nil: anywhere; empty: nowhere.
	HostPaths []string `json:"hostPaths"`
	// UnsafeSysctls are names of kernel parameters that pods may set beside the safe ones, or beginnings of names with "*"
	// behind (the kubelet's --allowed-unsafe-sysctls).
	UnsafeSysctls []string `json:"allowedUnsafeSysctls,omitempty"`
}

// Check returns everything for which the policy refuses a pod, in the order of the standards' controls; nothing: it may run.
func (p Policy) Check(pod *spec.Pod) []lifecycle.Refusal {
	r := &review{pod: pod}
	r.podSecurity(p.PodSecurity)
	r.hostPaths(p.HostPaths)
	r.sysctls(p.UnsafeSysctls)
	return r.refusals
}

// CheckEphemeral is [Policy.Check] for a container that is added to a pod, which was accepted under whatever policy held then.
func (p Policy) CheckEphemeral(pod *spec.Pod, c *spec.Container) []lifecycle.Refusal {
	whole := *pod
	whole.EphemeralContainers = []spec.Container{inheriting(pod, *c)}
	return slices.DeleteFunc(p.Check(&whole), func(r lifecycle.Refusal) bool { return !strings.HasPrefix(r.Field, ephemeral) })
}

// inheriting is a container that says itself what it has from its pod, for which it then answers itself.
func inheriting(pod *spec.Pod, c spec.Container) spec.Container {
	if pod.SecurityContext == nil {
		return c
	}
	own := *cmp.Or(c.SecurityContext, &spec.SecurityContext{})
	own.RunAsUser = cmp.Or(own.RunAsUser, pod.SecurityContext.RunAsUser)
	own.RunAsNonRoot = cmp.Or(own.RunAsNonRoot, pod.SecurityContext.RunAsNonRoot)
	own.SeccompProfile = cmp.Or(own.SeccompProfile, pod.SecurityContext.SeccompProfile)
	own.AppArmorProfile = cmp.Or(own.AppArmorProfile, pod.SecurityContext.AppArmorProfile)
	c.SecurityContext = &own
	return c
}

const ephemeral = "ephemeralContainers["

// review is one look at a pod.
type review struct {
	pod      *spec.Pod
	refusals []lifecycle.Refusal
}

func (r *review) hostPaths(allowed []string) {
	if allowed == nil {
		return
	}
	for i := range r.pod.Volumes {
		v := r.pod.Volumes[i].HostPath
		if v == nil || slices.ContainsFunc(allowed, func(dir string) bool { return Below(v.Path, dir) }) {
			continue
		}
		want := "the policy of this machine allows no hostPath"
		if len(allowed) > 0 {
			want = "the policy of this machine allows hostPaths below " + strings.Join(allowed, ", ")
		}
		r.refusals = append(r.refusals, lifecycle.Refusal{
			Reason: lifecycle.ReasonHostPathForbidden, Field: fmt.Sprintf("volumes[%d].hostPath.path", i),
			Message: fmt.Sprintf("%q: %s", v.Path, want),
			Hint:    "use a persistentVolumeClaim, or add the folder to hostPaths of [policy] in podstead.toml and restart the daemon",
		})
	}
}

// Below reports whether an absolute path is a folder or lies below it, by its letters alone: links are not followed.
func Below(name, dir string) bool {
	name, dir = path.Clean(name), path.Clean(dir)
	return dir == "/" || name == dir || strings.HasPrefix(name, dir+"/")
}

func (r *review) sysctls(allowed []string) {
	unsafe := r.pod.UnsafeSysctls()
	for i := range unsafe {
		name := unsafe[i]
		if MatchSysctl(allowed, name) {
			continue
		}
		refusal := lifecycle.Refusal{
			Reason: lifecycle.ReasonSysctlForbidden, Field: r.sysctlField(name),
			Message: fmt.Sprintf("forbidden sysctl: %q not allowlisted", name), // the kubelet's words
			Hint:    fmt.Sprintf("add %q to allowedUnsafeSysctls of [policy] in podstead.toml and restart the daemon", name),
		}
		if spec.SysctlNamespace(name) == "" {
			refusal.Message = fmt.Sprintf("forbidden sysctl: %q belongs to the machine, of which pods have no value of their own", name)
			refusal.Hint = fmt.Sprintf("take it out of the pod, and set it for the machine: sysctl -w %s=...", name)
		}
		r.refusals = append(r.refusals, refusal)
	}
}

// sysctlField is the path of the kernel parameter of a name in the form of [spec.SysctlName].
func (r *review) sysctlField(name string) string {
	list := r.pod.SecurityContext.Sysctls
	i := slices.IndexFunc(list, func(s spec.Sysctl) bool { return spec.SysctlName(s.Name) == name })
	return fmt.Sprintf("securityContext.sysctls[%d].name", i)
}

// MatchSysctl reports whether one of the patterns, of [Policy.UnsafeSysctls], allows a kernel parameter that belongs to a
// namespace.
func MatchSysctl(patterns []string, name string) bool {
	return spec.SysctlNamespace(name) != "" && slices.ContainsFunc(patterns, func(pattern string) bool {
		if beginning, open := strings.CutSuffix(pattern, "*"); open {
			return strings.HasPrefix(name, spec.SysctlName(beginning))
		}
		return spec.SysctlName(pattern) == name
	})
}

// CheckSysctlPattern says what is wrong with a pattern of [Policy.UnsafeSysctls]: all that it stands for must belong to a
// namespace, as with the kubelet.
func CheckSysctlPattern(pattern string) error {
	beginning, _ := strings.CutSuffix(pattern, "*")
	if beginning == "" || strings.Contains(beginning, "*") || spec.SysctlNamespace(beginning) == "" {
		return fmt.Errorf("%q is no kernel parameter of a namespace: want net.*, kernel.shm*, kernel.msg*, kernel.sem, fs.mqueue.*, or names among these", pattern)
	}
	return nil
}
