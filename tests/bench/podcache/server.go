// SPDX-License-Identifier: Apache-2.0
package main

import (
	"bufio"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"math/rand"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// The protobuf that kube-apiserver puts before each object.
var magic = []byte("k8s\x00")

const protobufType = "application/vnd.kubernetes.protobuf"

func podUID(hex string) types.UID {
	return types.UID(hex[:8] + "-" + hex[8:12] + "-" + hex[12:16] + "-" + hex[16:20] + "-" + hex[20:32])
}

// server sends pods that it makes on the way: it holds none, so that its memory is no part of the measurement.
type server struct {
	cluster
	lists   atomic.Int64 // complete lists that were sent
	mutex   sync.Mutex
	version int64
	oldest  int64 // a watch from before it is "410 Gone"
	changed map[int]change
	streams map[chan []byte]struct{} // frames of changes; closed to end the watch
}

type change struct{ version, sent int64 }

func serve(args []string) error {
	flags := flag.NewFlagSet("serve", flag.ExitOnError)
	s := &server{version: 1000, changed: map[int]change{}, streams: map[chan []byte]struct{}{}}
	listen := flags.String("listen", "127.0.0.1:0", "address")
	flags.IntVar(&s.pods, "pods", 100_000, "pods of the cluster")
	flags.IntVar(&s.nodes, "nodes", 5_000, "its nodes")
	flags.IntVar(&s.bytes, "bytes", 5_000, "size of a pod")
	flags.IntVar(&s.annotated, "annotated", 100, "percent of pods that ask for profiles")
	if err := flags.Parse(args); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", listener.Addr())
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/pods", s.get)
	mux.HandleFunc("POST /gone", s.gone)
	mux.HandleFunc("POST /change", s.change)
	mux.HandleFunc("GET /lists", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, s.lists.Load()) })
	return http.Serve(listener, mux)
}

func (s *server) state(i int) *corev1.Pod {
	s.mutex.Lock()
	at, found := s.changed[i]
	s.mutex.Unlock()
	if !found {
		return s.pod(i, 1000, 0)
	}
	return s.pod(i, at.version, at.sent)
}

func (s *server) now() int64 {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.version
}

func (s *server) get(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", protobufType)
	if r.FormValue("watch") != "" {
		s.watch(w, r)
		return
	}
	from, _ := strconv.Atoi(r.FormValue("continue"))
	limit, _ := strconv.Atoi(r.FormValue("limit"))
	to := s.pods
	meta := metav1.ListMeta{ResourceVersion: strconv.FormatInt(s.now(), 10)}
	if limit > 0 && from+limit < s.pods {
		to = from + limit
		meta.Continue = strconv.Itoa(to)
	}
	body := bufio.NewWriterSize(w, 64<<10)
	// The length of the list comes before it, so it is made twice.
	size := len(bytesField(1, must(meta.Marshal())))
	for i := from; i < to; i++ {
		size += fieldSize(s.state(i).Size())
	}
	unknown := append([]byte{}, magic...)
	unknown = append(unknown, bytesField(1, must((&runtime.TypeMeta{APIVersion: "v1", Kind: "PodList"}).Marshal()))...)
	unknown = append(unknown, 2<<3|2)
	unknown = binary.AppendUvarint(unknown, uint64(size))
	_, _ = body.Write(unknown)
	_, _ = body.Write(bytesField(1, must(meta.Marshal())))
	for i := from; i < to; i++ {
		_, _ = body.Write(bytesField(2, must(s.state(i).Marshal())))
	}
	if err := body.Flush(); err == nil && meta.Continue == "" {
		s.lists.Add(1)
	}
}

func (s *server) watch(w http.ResponseWriter, r *http.Request) {
	from, _ := strconv.ParseInt(r.FormValue("resourceVersion"), 10, 64)
	initial := r.FormValue("sendInitialEvents") == "true"
	s.mutex.Lock()
	if !initial && from < s.oldest {
		s.mutex.Unlock()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusGone)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","message":"too old","code":410}`)
		return
	}
	changes := make(chan []byte, 10_000)
	s.streams[changes] = struct{}{}
	version := s.version
	s.mutex.Unlock()
	defer func() {
		s.mutex.Lock()
		delete(s.streams, changes)
		s.mutex.Unlock()
	}()
	w.Header().Set("Content-Type", protobufType+";stream=watch")
	w.WriteHeader(http.StatusOK)
	body := bufio.NewWriterSize(w, 64<<10)
	if initial {
		for i := range s.pods {
			if _, err := body.Write(frame("ADDED", s.state(i))); err != nil {
				return
			}
		}
		bookmark := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: strconv.FormatInt(version, 10), Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}
		_, _ = body.Write(frame("BOOKMARK", bookmark))
		if body.Flush() == nil {
			s.lists.Add(1)
		}
	}
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
	for {
		select {
		case event, open := <-changes:
			if !open {
				return
			}
			_, _ = body.Write(event)
			_ = body.Flush()
			w.(http.Flusher).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

// gone ends every watch and forgets the past, so that clients list anew.
func (s *server) gone(http.ResponseWriter, *http.Request) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.version++
	s.oldest = s.version
	for stream := range s.streams {
		close(stream)
		delete(s.streams, stream)
	}
}

// change changes `count` pods at random, `rate` of them a second, then answers.
func (s *server) change(w http.ResponseWriter, r *http.Request) {
	count, _ := strconv.Atoi(r.FormValue("count"))
	rate, _ := strconv.Atoi(r.FormValue("rate"))
	tick := time.NewTicker(time.Second / time.Duration(max(rate, 1)))
	defer tick.Stop()
	for range count {
		<-tick.C
		i := s.nodes + rand.Intn(s.pods-s.nodes) // agents stay as they are
		s.mutex.Lock()
		s.version++
		at := change{s.version, time.Now().UnixNano()}
		s.changed[i] = at
		event := frame("MODIFIED", s.pod(i, at.version, at.sent))
		for stream := range s.streams {
			stream <- event
		}
		s.mutex.Unlock()
	}
	_, _ = io.WriteString(w, "done\n")
}

func frame(kind string, pod *corev1.Pod) []byte {
	object := append([]byte{}, magic...)
	object = append(object, bytesField(1, must((&runtime.TypeMeta{APIVersion: "v1", Kind: "Pod"}).Marshal()))...)
	object = append(object, bytesField(2, must(pod.Marshal()))...)
	event := must((&metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: object}}).Marshal())
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(event))), event...)
}

func bytesField(number byte, value []byte) []byte {
	out := binary.AppendUvarint([]byte{number<<3 | 2}, uint64(len(value)))
	return append(out, value...)
}

func fieldSize(size int) int { return 1 + len(binary.AppendUvarint(nil, uint64(size))) + size }

func must(bytes []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return bytes
}
