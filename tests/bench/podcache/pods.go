// SPDX-License-Identifier: Apache-2.0
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	podsPerWorkload   = 10
	podsPerNamespace  = 1000
	sentAnnotation    = "resource.opentelemetry.io/service.name" // wall clock, when the change was sent: the assignment has it
	scrapeAnnotation  = "pyroscope.io/scrape"
	creationUnix      = 1_750_000_000
	managedFieldsSize = 2200
)

type cluster struct {
	pods, nodes, bytes int
	annotated          int // percent of pods that ask for profiles
}

func digest(format string, args ...any) string {
	sum := sha256.Sum256([]byte(fmt.Sprintf(format, args...)))
	return hex.EncodeToString(sum[:])
}

// pod is number i of the cluster; sent is 0 for one that did not change. The first of each node is that of its agent.
func (c cluster) pod(i int, version, sent int64) *corev1.Pod {
	workload := i / podsPerWorkload
	app := fmt.Sprintf("service-%d", workload)
	hash := digest("hash %d", workload)[:10]
	uid := digest("uid %d", i)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:              fmt.Sprintf("%s-%s-%s", app, hash, digest("suffix %d", i)[:5]),
			GenerateName:      fmt.Sprintf("%s-%s-", app, hash),
			Namespace:         fmt.Sprintf("team-%d", i/podsPerNamespace),
			UID:               "",
			ResourceVersion:   fmt.Sprint(version),
			CreationTimestamp: metav1.Unix(creationUnix+int64(i), 0),
			Labels: map[string]string{
				"app.kubernetes.io/name": app, "app.kubernetes.io/version": "1.2.3", "pod-template-hash": hash,
				"app.kubernetes.io/part-of": fmt.Sprintf("product-%d", workload/10), "team": fmt.Sprintf("team-%d", i/podsPerNamespace),
			},
			Annotations: map[string]string{
				"kubectl.kubernetes.io/restartedAt": "2026-01-02T03:04:05Z",
				"prometheus.io/scrape":              "true", "prometheus.io/port": "9090",
			},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app + "-" + hash, Controller: new(bool)}},
		},
		Spec: corev1.PodSpec{
			NodeName:           fmt.Sprintf("node-%d.eu-west-1.compute.internal", i%c.nodes),
			ServiceAccountName: app,
			RestartPolicy:      corev1.RestartPolicyAlways,
			Volumes:            []corev1.Volume{{Name: "kube-api-access"}, {Name: "config"}},
			Containers:         []corev1.Container{container("main", app), container("proxy", "proxy")},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255), HostIP: "10.0.0.1",
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodInitialized, Status: corev1.ConditionTrue},
				{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionTrue},
			},
			ContainerStatuses: []corev1.ContainerStatus{status("main", i), status("proxy", i)},
		},
	}
	pod.UID = podUID(uid)
	*pod.OwnerReferences[0].Controller = true
	if i < c.nodes {
		pod.Name, pod.Namespace = fmt.Sprintf("flamefleet-agent-default-%d", i), "flamefleet-system"
		pod.Labels, pod.Annotations = map[string]string{"flamefleet.dev/pool": "default"}, map[string]string{}
		pod.OwnerReferences[0].Kind, pod.OwnerReferences[0].Name = "DaemonSet", "flamefleet-agent-default"
	}
	if i%100 < c.annotated && i >= c.nodes {
		pod.Annotations[scrapeAnnotation] = "true"
	}
	if sent != 0 {
		pod.Annotations[sentAnnotation] = fmt.Sprint(sent)
	}
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1",
		FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:metadata":{"f:labels":{` + strings.Repeat(`"f:x":{},`, managedFieldsSize/9) + `"f:y":{}}}}`)},
	}}
	// Up to the size that was asked for.
	if missing := c.bytes - pod.Size(); missing > 0 {
		pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: "PADDING", Value: digest("padding %d", i) + strings.Repeat("x", missing)})
	}
	return pod
}

func container(name, app string) corev1.Container {
	quantity := resource.MustParse("100m")
	c := corev1.Container{
		Name: name, Image: "registry.example.com/" + app + ":1.2.3", ImagePullPolicy: corev1.PullIfNotPresent,
		Ports:     []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}, {Name: "pprof", ContainerPort: 6060, Protocol: corev1.ProtocolTCP}},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: quantity}, Limits: corev1.ResourceList{corev1.ResourceCPU: quantity}},
	}
	for i := range 8 {
		c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", i), Value: "value of the setting"})
	}
	return c
}

func status(name string, i int) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name: name, Ready: true, Image: "registry.example.com/" + name + ":1.2.3", ImageID: "sha256:" + digest("image %s", name),
		ContainerID: "containerd://" + digest("container %s %d", name, i),
		State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Unix(creationUnix, 0))}},
	}
}
