// SPDX-License-Identifier: Apache-2.0

/** What shares.cc is, for Java: java Shares.java */
final class Shares {
  private static int sink;
  private static int state = 1;

  private static int random(int end) {
    state = state * 1664525 + 1013904223;
    return (state >>> 8) % end;
  }

  // In a register: how long a word of memory takes to come back depends on what was before.
  private static void spin() {
    int sum = sink;
    for (int i = 0; i < 1000; ++i) sum = sum * 31 + i;
    sink = sum;
  }

  private static void seventy(int units) {
    for (int i = 0; i < 7 * units; ++i) spin();
  }

  private static void thirty(int units) {
    for (int i = 0; i < 3 * units; ++i) spin();
  }

  private static void middle() {
    for (int i = 0; i < 100; ++i) {
      int units = 1 + random(8);
      seventy(units);
      thirty(units);
    }
  }

  private static void outer() {
    middle();
    ++sink;
  }

  public static void main(String[] arguments) {
    for (;;) outer();
  }
}
