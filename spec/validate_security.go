package spec

import (
	"math"
	"slices"
	"strings"

	"github.com/podstead/podstead/internal/lazyregexp"
)

func (v *validator) podSecurity(s *PodSecurityContext) {
	if s == nil {
		return
	}
	v.id(s.RunAsUser)
	v.id(s.RunAsGroup)
	v.id(s.FSGroup)
	for i := range s.SupplementalGroups {
		v.id(&s.SupplementalGroups[i])
	}
	chosen(v, &s.SupplementalGroupsPolicy, "Merge", "Strict")
	chosen(v, &s.FSGroupChangePolicy, "Always", "OnRootMismatch")
	v.profile(s.SeccompProfile, v.relativePath)
	v.profile(s.AppArmorProfile, v.appArmorName)
	seen := unique{}
	for i := range s.Sysctls {
		v.sysctl(&s.Sysctls[i], seen)
	}
}

var sysctlName = lazyregexp.New(`^[a-z0-9]([-_a-z0-9]*[a-z0-9])?([./][a-z0-9]([-_a-z0-9]*[a-z0-9])?)*$`)

func (v *validator) sysctl(s *Sysctl, seen unique) {
	v.required(s, "name", s.Name == "")
	name := SysctlName(s.Name)
	namespace := SysctlNamespace(name)
	switch {
	case name == "":
	case len(name) > 253 || !sysctlName.MatchString(s.Name):
		v.invalid(&s.Name, s.Name, "must be the name of a sysctl, such as \"kernel.shm_rmid_forced\"")
	case seen.seen(name):
		v.duplicate(&s.Name, s.Name)
	case v.pod.HostNetwork && namespace == "net":
		v.invalid(&s.Name, s.Name, "may not be specified when hostNetwork is true")
	case v.pod.HostIPC && namespace == "ipc":
		v.invalid(&s.Name, s.Name, "may not be specified when hostIPC is true")
	}
}

// id checks a user or group ID.
func (v *validator) id(id *int64) {
	if id != nil && (*id < 0 || *id > math.MaxInt32) {
		v.bad(id, "%s", inRange(0, math.MaxInt32))
	}
}

// profile checks a profile. local checks the name or the path of its Localhost profile.
func (v *validator) profile(p *SecurityProfile, local func(*string)) {
	if p == nil {
		return
	}
	v.required(p, "type", p.Type == "")
	oneOf(v, &p.Type, "RuntimeDefault", "Unconfined", "Localhost")
	switch {
	case p.Type == "Localhost":
		v.required(p, "localhostProfile", p.LocalhostProfile == nil || *p.LocalhostProfile == "")
		if p.LocalhostProfile != nil {
			local(p.LocalhostProfile)
		}
	case p.LocalhostProfile != nil:
		v.bad(p.LocalhostProfile, "may only be set when type is Localhost")
	}
}

// appArmorName checks the name of a loaded AppArmor profile. It is often the path of a program, such as /usr/sbin/nginx.
func (v *validator) appArmorName(field *string) {
	const maxLength = 4095 // PATH_MAX - 1
	if strings.TrimSpace(*field) != *field {
		v.invalid(field, *field, "must not be padded with whitespace")
	}
	if len(*field) > maxLength {
		v.bad(field, "Too long: may not be more than %d bytes", maxLength)
	}
}

func (v *validator) security(c *Container) {
	s := c.SecurityContext
	if s == nil {
		return
	}
	v.id(s.RunAsUser)
	v.id(s.RunAsGroup)
	v.profile(s.SeccompProfile, v.relativePath)
	v.profile(s.AppArmorProfile, v.appArmorName)
	chosen(v, &s.ProcMount, "Default", "Unmasked")
	if s.ProcMount == "Unmasked" && (v.pod.HostUsers == nil || *v.pod.HostUsers) {
		v.invalid(&s.ProcMount, s.ProcMount, "hostUsers must be false to use Unmasked")
	}
	if s.Capabilities != nil {
		for _, list := range [][]string{s.Capabilities.Add, s.Capabilities.Drop} {
			for i := range list {
				v.capability(&list[i])
			}
		}
	}
	if s.AllowPrivilegeEscalation != nil && !*s.AllowPrivilegeEscalation && privileged(c) {
		v.bad(s.AllowPrivilegeEscalation, "cannot set allowPrivilegeEscalation to false and privileged to true")
	}
}

func (v *validator) capability(field *string) {
	if slices.Contains(capabilities, *field) {
		return
	}
	name := strings.TrimPrefix(*field, "CAP_")
	v.badHint(field, didYouMean(name, capabilities),
		"Unsupported value: %s: must be a Linux capability without the prefix CAP_, or \"ALL\"", quote(*field))
}

// capabilities are the capabilities of Linux 6.1 without the prefix CAP_, and ALL.
var capabilities = strings.Fields(`ALL AUDIT_CONTROL AUDIT_READ AUDIT_WRITE BLOCK_SUSPEND BPF CHECKPOINT_RESTORE CHOWN
	DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID IPC_LOCK IPC_OWNER KILL LEASE LINUX_IMMUTABLE MAC_ADMIN MAC_OVERRIDE MKNOD
	NET_ADMIN NET_BIND_SERVICE NET_BROADCAST NET_RAW PERFMON SETFCAP SETGID SETPCAP SETUID SYSLOG SYS_ADMIN SYS_BOOT
	SYS_CHROOT SYS_MODULE SYS_NICE SYS_PACCT SYS_PTRACE SYS_RAWIO SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG WAKE_ALARM`)
