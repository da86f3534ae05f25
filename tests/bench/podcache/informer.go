// SPDX-License-Identifier: Apache-2.0
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// What the operator's cache prints too: see tests/bench/pod_cache_bench.cc.
type report struct {
	mutex sync.Mutex
	lags  []time.Duration
	begin int64 // changes from before it are not of this run
}

func (r *report) update(object any) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	sent, err := strconv.ParseInt(pod.Annotations[sentAnnotation], 10, 64)
	if err != nil || sent < r.begin {
		return
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.lags = append(r.lags, time.Duration(time.Now().UnixNano()-sent))
}

func informer(args []string) error {
	flags := flag.NewFlagSet("informer", flag.ExitOnError)
	url := flags.String("url", "", "of the stream server")
	count := flags.Int("changes", 0, "pods to change")
	rate := flags.Int("rate", 20, "changes a second")
	if err := flags.Parse(args); err != nil {
		return err
	}
	log.SetLogger(logr.Discard())
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	pods, err := cache.New(&rest.Config{Host: *url}, cache.Options{Scheme: scheme.Scheme, Mapper: mapper, HTTPClient: http.DefaultClient})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	started := time.Now()
	go func() { _ = pods.Start(ctx) }()
	handle, err := pods.GetInformer(ctx, &corev1.Pod{})
	if err != nil {
		return err
	}
	if !pods.WaitForCacheSync(ctx) {
		return fmt.Errorf("not synced")
	}
	fmt.Printf("sync_s %.1f\n", time.Since(started).Seconds())
	time.Sleep(settle)
	fmt.Printf("rss_synced_mib %.0f\n", mib("VmRSS"))
	fmt.Printf("rss_peak_sync_mib %.0f\n", mib("VmHWM"))

	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		return err
	}
	lists := text(http.Get(*url + "/lists"))
	text(http.Post(*url+"/gone", "", nil))
	for text(http.Get(*url+"/lists")) == lists {
		time.Sleep(100 * time.Millisecond)
	}
	time.Sleep(settle)
	fmt.Printf("rss_peak_relist_mib %.0f\n", mib("VmHWM"))
	fmt.Printf("rss_after_relist_mib %.0f\n", mib("VmRSS"))
	if *count == 0 {
		return nil
	}

	r := &report{begin: time.Now().UnixNano()}
	if _, err := handle.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(_, after any) { r.update(after) }}); err != nil {
		return err
	}
	time.Sleep(settle)
	before, begin := cpu(), time.Now()
	text(http.Post(fmt.Sprintf("%s/change?count=%d&rate=%d", *url, *count, *rate), "", nil))
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		r.mutex.Lock()
		done := len(r.lags) >= *count
		r.mutex.Unlock()
		if done {
			break
		}
	}
	used, elapsed := cpu()-before, time.Since(begin)
	r.mutex.Lock()
	defer r.mutex.Unlock()
	slices.Sort(r.lags)
	fmt.Printf("changes %d\n", len(r.lags))
	fmt.Printf("cpu_percent_of_core %.2f\n", 100*used.Seconds()/elapsed.Seconds())
	fmt.Printf("lag_p50_ms %.3f\nlag_p99_ms %.3f\n", ms(r.lags, 50), ms(r.lags, 99))
	return nil
}

// Until what is left over from a list is gone.
const settle = 10 * time.Second

func ms(sorted []time.Duration, percent int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return float64(sorted[(len(sorted)-1)*percent/100].Nanoseconds()) / 1e6
}

func text(response *http.Response, err error) string {
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	return string(body)
}

func mib(key string) float64 {
	status, _ := os.ReadFile("/proc/self/status")
	for _, line := range strings.Split(string(status), "\n") {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == key+":" {
			kib, _ := strconv.ParseFloat(fields[1], 64)
			return kib / 1024
		}
	}
	return 0
}

func cpu() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
