package spec

import (
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// additions are the fields of a pod file that PodSpec and Container do not have:
// fields of metadata, and extensions of Podstead.
var additions = map[reflect.Type][]string{
	reflect.TypeFor[Pod](): {
		"annotations", "backoffLimit", "configMaps", "imageArchives", "job", "keepID", "labels", "name", "onUnhealthy", "pidsLimit",
		"restartBackoff", "schedule", "secrets", "shmSize", "systemd", "ttlSecondsAfterFinished", "unhealthyAfterSeconds",
		"update", "waitFor",
	},
	reflect.TypeFor[Container](): {"devices", "init", "maxRestarts", "restartBackoff", "ulimits"},
}

// oldNames are the deprecated names of fields.
var oldNames = map[reflect.Type][]string{reflect.TypeFor[Pod](): {"serviceAccount"}}

// TestFieldsAreKubernetes checks that every table has the fields of its
// Kubernetes type, except the omitted ones, and the additions.
func TestFieldsAreKubernetes(t *testing.T) {
	for _, test := range []struct {
		ours, theirs reflect.Type
	}{
		{reflect.TypeFor[Pod](), reflect.TypeFor[corev1.PodSpec]()},
		{reflect.TypeFor[PodOS](), reflect.TypeFor[corev1.PodOS]()},
		{reflect.TypeFor[Container](), reflect.TypeFor[corev1.Container]()},
		{reflect.TypeFor[RestartRule](), reflect.TypeFor[corev1.ContainerRestartRule]()},
		{reflect.TypeFor[ExitCodes](), reflect.TypeFor[corev1.ContainerRestartRuleOnExitCodes]()},
		{reflect.TypeFor[EnvVar](), reflect.TypeFor[corev1.EnvVar]()},
		{reflect.TypeFor[EnvVarSource](), reflect.TypeFor[corev1.EnvVarSource]()},
		{reflect.TypeFor[FieldRef](), reflect.TypeFor[corev1.ObjectFieldSelector]()},
		{reflect.TypeFor[ResourceFieldRef](), reflect.TypeFor[corev1.ResourceFieldSelector]()},
		{reflect.TypeFor[KeyRef](), reflect.TypeFor[corev1.ConfigMapKeySelector]()},
		{reflect.TypeFor[KeyRef](), reflect.TypeFor[corev1.SecretKeySelector]()},
		{reflect.TypeFor[EnvFrom](), reflect.TypeFor[corev1.EnvFromSource]()},
		{reflect.TypeFor[EnvReference](), reflect.TypeFor[corev1.ConfigMapEnvSource]()},
		{reflect.TypeFor[EnvReference](), reflect.TypeFor[corev1.SecretEnvSource]()},
		{reflect.TypeFor[ObjectReference](), reflect.TypeFor[corev1.LocalObjectReference]()},
		{reflect.TypeFor[ContainerPort](), reflect.TypeFor[corev1.ContainerPort]()},
		{reflect.TypeFor[ReadinessGate](), reflect.TypeFor[corev1.PodReadinessGate]()},
		{reflect.TypeFor[HostAlias](), reflect.TypeFor[corev1.HostAlias]()},
		{reflect.TypeFor[DNSConfig](), reflect.TypeFor[corev1.PodDNSConfig]()},
		{reflect.TypeFor[DNSOption](), reflect.TypeFor[corev1.PodDNSConfigOption]()},
		{reflect.TypeFor[Resources](), reflect.TypeFor[corev1.ResourceRequirements]()},
		{reflect.TypeFor[Volume](), reflect.TypeFor[corev1.Volume]()},
		{reflect.TypeFor[EmptyDirVolume](), reflect.TypeFor[corev1.EmptyDirVolumeSource]()},
		{reflect.TypeFor[HostPathVolume](), reflect.TypeFor[corev1.HostPathVolumeSource]()},
		{reflect.TypeFor[ClaimVolume](), reflect.TypeFor[corev1.PersistentVolumeClaimVolumeSource]()},
		{reflect.TypeFor[ConfigMapVolume](), reflect.TypeFor[corev1.ConfigMapVolumeSource]()},
		{reflect.TypeFor[SecretVolume](), reflect.TypeFor[corev1.SecretVolumeSource]()},
		{reflect.TypeFor[KeyToPath](), reflect.TypeFor[corev1.KeyToPath]()},
		{reflect.TypeFor[ProjectedVolume](), reflect.TypeFor[corev1.ProjectedVolumeSource]()},
		{reflect.TypeFor[Projection](), reflect.TypeFor[corev1.VolumeProjection]()},
		{reflect.TypeFor[KeyProjection](), reflect.TypeFor[corev1.ConfigMapProjection]()},
		{reflect.TypeFor[KeyProjection](), reflect.TypeFor[corev1.SecretProjection]()},
		{reflect.TypeFor[DownwardProjection](), reflect.TypeFor[corev1.DownwardAPIProjection]()},
		{reflect.TypeFor[DownwardAPIVolume](), reflect.TypeFor[corev1.DownwardAPIVolumeSource]()},
		{reflect.TypeFor[DownwardFile](), reflect.TypeFor[corev1.DownwardAPIVolumeFile]()},
		{reflect.TypeFor[ImageVolume](), reflect.TypeFor[corev1.ImageVolumeSource]()},
		{reflect.TypeFor[VolumeMount](), reflect.TypeFor[corev1.VolumeMount]()},
		{reflect.TypeFor[Probe](), reflect.TypeFor[corev1.Probe]()},
		{reflect.TypeFor[Lifecycle](), reflect.TypeFor[corev1.Lifecycle]()},
		{reflect.TypeFor[LifecycleHandler](), reflect.TypeFor[corev1.LifecycleHandler]()},
		{reflect.TypeFor[ExecAction](), reflect.TypeFor[corev1.ExecAction]()},
		{reflect.TypeFor[HTTPGetAction](), reflect.TypeFor[corev1.HTTPGetAction]()},
		{reflect.TypeFor[HTTPHeader](), reflect.TypeFor[corev1.HTTPHeader]()},
		{reflect.TypeFor[TCPSocketAction](), reflect.TypeFor[corev1.TCPSocketAction]()},
		{reflect.TypeFor[GRPCAction](), reflect.TypeFor[corev1.GRPCAction]()},
		{reflect.TypeFor[SleepAction](), reflect.TypeFor[corev1.SleepAction]()},
		{reflect.TypeFor[PodSecurityContext](), reflect.TypeFor[corev1.PodSecurityContext]()},
		{reflect.TypeFor[SecurityContext](), reflect.TypeFor[corev1.SecurityContext]()},
		{reflect.TypeFor[Capabilities](), reflect.TypeFor[corev1.Capabilities]()},
		{reflect.TypeFor[SecurityProfile](), reflect.TypeFor[corev1.SeccompProfile]()},
		{reflect.TypeFor[SecurityProfile](), reflect.TypeFor[corev1.AppArmorProfile]()},
		{reflect.TypeFor[Sysctl](), reflect.TypeFor[corev1.Sysctl]()},
	} {
		ours := slices.AppendSeq(fieldsOf(test.ours).names(), maps.Keys(omitted[test.ours]))
		ours = slices.AppendSeq(ours, maps.Keys(clusterOnly[test.ours]))
		ours = append(ours, oldNames[test.ours]...)
		theirs := slices.Concat(jsonNames(test.theirs), additions[test.ours])
		slices.Sort(ours)
		slices.Sort(theirs)
		for _, name := range ours {
			if !slices.Contains(theirs, name) {
				t.Errorf("%s.%s is not in Kubernetes", test.ours, name)
			}
		}
		for _, name := range theirs {
			if !slices.Contains(ours, name) {
				t.Errorf("%s.%s of Kubernetes is neither supported nor omitted", test.ours, name)
			}
		}
	}
}

// TestRefusals checks that each field that is ignored or refused has a reason, each refused one a hint, and that docs/design/deviations.md
// has all of them.
func TestRefusals(t *testing.T) {
	page, err := os.ReadFile("../docs/design/deviations.md")
	if err != nil {
		t.Fatal(err)
	}
	for effect, tables := range map[string]map[reflect.Type]map[string]refusal{"ignored": clusterOnly, "refused": omitted} {
		for table, fields := range tables {
			for field, r := range fields {
				if r.why == "" || effect == "refused" && r.hint == "" || strings.Contains(r.why, "single host") {
					t.Errorf("%s.%s: %+v", table, field, r)
				}
				want := `\| ` + table.Name() + " \\| [^|]*`" + field + "`[^|]* \\| " + effect + ` \| ` + regexp.QuoteMeta(r.why) + ` \|`
				if row := regexp.MustCompile(want); !row.Match(page) {
					t.Errorf("docs/design/deviations.md has no row %v", row)
				}
			}
		}
	}
}

// jsonNames returns the fields of a Kubernetes type, including embedded ones.
func jsonNames(t reflect.Type) []string {
	var names []string
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			names = append(names, jsonNames(f.Type)...)
			continue
		}
		names = append(names, name)
	}
	return names
}

// TestMetadataIsKubernetes checks that all fields of ObjectMeta are handled.
func TestMetadataIsKubernetes(t *testing.T) {
	for _, name := range jsonNames(reflect.TypeFor[metav1.ObjectMeta]()) {
		if !objectMetaKeys[name] && !slices.Contains(metadataKeys, name) {
			t.Errorf("metadata.%s of Kubernetes is not known", name)
		}
	}
}

// TestValuesAreKubernetes checks the values of enumerations.
func TestValuesAreKubernetes(t *testing.T) {
	for _, pair := range [][2]string{
		{string(RestartAlways), string(corev1.RestartPolicyAlways)},
		{string(RestartOnFailure), string(corev1.RestartPolicyOnFailure)},
		{string(RestartNever), string(corev1.RestartPolicyNever)},
		{string(PullAlways), string(corev1.PullAlways)},
		{string(PullIfNotPresent), string(corev1.PullIfNotPresent)},
		{string(PullNever), string(corev1.PullNever)},
		{string(TerminationMessageFile), string(corev1.TerminationMessageReadFile)},
		{string(TerminationMessageFallbackToLogs), string(corev1.TerminationMessageFallbackToLogsOnError)},
		{string(ProtocolTCP), string(corev1.ProtocolTCP)},
		{string(ProtocolUDP), string(corev1.ProtocolUDP)},
		{string(ProtocolSCTP), string(corev1.ProtocolSCTP)},
		{Linux, string(corev1.Linux)},
		{string(DNSDefault), string(corev1.DNSDefault)},
		{string(DNSNone), string(corev1.DNSNone)},
		{string(HostPathDirectoryOrCreate), string(corev1.HostPathDirectoryOrCreate)},
		{string(HostPathDirectory), string(corev1.HostPathDirectory)},
		{string(HostPathFileOrCreate), string(corev1.HostPathFileOrCreate)},
		{string(HostPathFile), string(corev1.HostPathFile)},
		{string(HostPathSocket), string(corev1.HostPathSocket)},
		{string(HostPathCharDevice), string(corev1.HostPathCharDev)},
		{string(HostPathBlockDevice), string(corev1.HostPathBlockDev)},
		{"Restart", string(corev1.ContainerRestartRuleActionRestart)},
		{"RestartAllContainers", string(corev1.ContainerRestartRuleActionRestartAllContainers)},
		{"In", string(corev1.ContainerRestartRuleOnExitCodesOpIn)},
		{"NotIn", string(corev1.ContainerRestartRuleOnExitCodesOpNotIn)},
		{"Memory", string(corev1.StorageMediumMemory)},
		{"HTTP", string(corev1.URISchemeHTTP)},
		{"HTTPS", string(corev1.URISchemeHTTPS)},
		{"None", string(corev1.MountPropagationNone)},
		{"HostToContainer", string(corev1.MountPropagationHostToContainer)},
		{"Bidirectional", string(corev1.MountPropagationBidirectional)},
		{"Disabled", string(corev1.RecursiveReadOnlyDisabled)},
		{"IfPossible", string(corev1.RecursiveReadOnlyIfPossible)},
		{"Enabled", string(corev1.RecursiveReadOnlyEnabled)},
		{"Merge", string(corev1.SupplementalGroupsPolicyMerge)},
		{"Strict", string(corev1.SupplementalGroupsPolicyStrict)},
		{"OnRootMismatch", string(corev1.FSGroupChangeOnRootMismatch)},
		{"RuntimeDefault", string(corev1.SeccompProfileTypeRuntimeDefault)},
		{"Unconfined", string(corev1.SeccompProfileTypeUnconfined)},
		{"Localhost", string(corev1.SeccompProfileTypeLocalhost)},
		{"Default", string(corev1.DefaultProcMount)},
		{"Unmasked", string(corev1.UnmaskedProcMount)},
		{"cpu", string(corev1.ResourceCPU)},
		{"memory", string(corev1.ResourceMemory)},
		{"ephemeral-storage", string(corev1.ResourceEphemeralStorage)},
		{defaultTerminationMessagePath, corev1.TerminationMessagePathDefault},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%q is %q in Kubernetes", pair[0], pair[1])
		}
	}
	for _, signal := range []corev1.Signal{
		corev1.SIGABRT, corev1.SIGTERM, corev1.SIGSTKFLT, corev1.SIGRTMIN, corev1.SIGRTMAX, corev1.SIGRTMINPLUS15, corev1.SIGRTMAXMINUS14,
	} {
		if !slices.Contains(signals, string(signal)) {
			t.Errorf("the signal %s is not known", signal)
		}
	}
	if len(signals) != 65 {
		t.Errorf("%d signals, Kubernetes has 65", len(signals))
	}
}
