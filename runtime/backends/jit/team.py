"""Runs the parts of a call concurrently, by one team of threads for all programs.

A call in parts (`Parallel` in records.py) offers its parts to the team. The caller
takes parts as well, one after the other, while there are any, so it never waits for a
thread that has not begun a part. While one call uses the team, other callers run their
parts by themselves. Several callers therefore neither wait for each other nor start
more threads.

    ticket      the number of the offer (32 bits), and the number of parts not yet taken
    members     threads besides the caller that may take parts
    mode        how the caller computes with subnormal numbers (subnormals.py)
    left        parts that have not ended

Threads are POSIX threads that run no Python code. They start when a call first needs
them. An idle thread spins for a while (`PATIENCE`), because the next call usually comes
soon, and then sleeps. A forked child process has none of the threads, so its team
starts anew.
"""

import ctypes
import os
import platform
import time
from functools import cache

from . import signals, subnormals
from .llvm import compiler

PATIENCE = 100_000
"""The nanoseconds that a thread spins while it waits for work, or a caller for the end,
before it sleeps: about twice the cost of sleeping. Waking a thread takes 30
microseconds on a virtual machine, 15 of them in the caller. Spinning for as long as
sleeping costs takes at most twice the optimal time in every case (Karlin et al.,
"Competitive randomized algorithms for nonuniform problems", SODA 1990).
"""

_PAUSES = {
    "x86_64": "call void @llvm.x86.sse2.pause()",
    "aarch64": 'call void asm sideeffect "yield", ""()',
    "arm64": 'call void asm sideeffect "yield", ""()',
}
_PAUSE = _PAUSES.get(platform.machine(), "fence acquire")

_IS_LONG = f"""%time = call i64 @now()
  %is_first = icmp eq i64 %begun, 0
  %since = select i1 %is_first, i64 %time, i64 %begun
  %waited = sub i64 %time, %since
  %is_long = icmp ugt i64 %waited, {PATIENCE}"""

_TICKET, _PARTS, _TAPE, _MEMBERS, _STATUS, _MODE = range(6)
_LEFT, _BUSY, _STARTED, _SEATS, _WORK, _SIGNALS = 8, 16, 17, 18, 19, 20
_SLEEPERS, _WAITING = 24, 25
_LOCK, _OFFERED, _ENDED, _SIZE = 32, 40, 48, 56
"""The index of each field of a team, in words. Fields that several threads write are in
separate cache lines.
"""


def _fields(*names: int) -> str:
    return "\n".join(
        f"  %at{number} = getelementptr i64, ptr %team, i64 {number}"
        for number in names
    )


_TAKE = f"""define internal void @take(ptr %team) {{
entry:
{_fields(_PARTS, _TAPE, _STATUS, _MODE, _LEFT, _WAITING, _LOCK, _ENDED)}
  br label %next
next:
  %ticket = load atomic i64, ptr %team acquire, align 8
  %some = and i64 %ticket, 4294967295
  %none = icmp eq i64 %some, 0
  br i1 %none, label %done, label %try
try:
  %parts = load atomic ptr, ptr %at{_PARTS} monotonic, align 8
  %tape = load atomic ptr, ptr %at{_TAPE} monotonic, align 8
  %mode = load atomic i64, ptr %at{_MODE} monotonic, align 8
  %fewer = sub i64 %ticket, 1
  %tried = cmpxchg ptr %team, i64 %ticket, i64 %fewer acq_rel monotonic
  %is_taken = extractvalue {{ i64, i1 }} %tried, 1
  br i1 %is_taken, label %run, label %next
run:
  %number = sub i64 %some, 1
  %partat = getelementptr ptr, ptr %parts, i64 %number
  %part = load ptr, ptr %partat
  call void @set_mode(i64 %mode)
  %status = call i32 %tape(ptr %part)
  %is_good = icmp eq i32 %status, 0
  br i1 %is_good, label %end, label %failed
failed:
  store atomic i32 %status, ptr %at{_STATUS} monotonic, align 8
  br label %end
end:
  %before = atomicrmw sub ptr %at{_LEFT}, i64 1 seq_cst
  %is_last = icmp eq i64 %before, 1
  br i1 %is_last, label %tell, label %next
tell:
  %waiting = load atomic i64, ptr %at{_WAITING} seq_cst, align 8
  %is_awaited = icmp ne i64 %waiting, 0
  br i1 %is_awaited, label %signal, label %next
signal:
  call i32 @pthread_mutex_lock(ptr %at{_LOCK})
  call i32 @pthread_cond_signal(ptr %at{_ENDED})
  call i32 @pthread_mutex_unlock(ptr %at{_LOCK})
  br label %next
done:
  ret void
}}
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_signal(ptr)
define internal i64 @now() {{
  %time = alloca {{ i64, i64 }}
  call i32 @clock_gettime(i32 {time.CLOCK_MONOTONIC}, ptr %time)
  %seconds = load i64, ptr %time
  %restat = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %restat
  %whole = mul i64 %seconds, 1000000000
  %sum = add i64 %whole, %rest
  ret i64 %sum
}}
declare i32 @clock_gettime(i32, ptr)
{subnormals.MODE}
{"declare void @llvm.x86.sse2.pause()" if "x86" in _PAUSE else ""}
"""
"""Takes parts until there are none, and wakes a caller who waits for the last one. A
thread reads the fields of an offer before it changes the ticket; the fields change only
when no part is left.
"""

_WORK_TEXT = f"""{_TAKE}
define i32 @{{name}}(ptr %team) {{
entry:
{_fields(_MEMBERS, _SEATS, _SIGNALS, _SLEEPERS, _LOCK, _OFFERED)}
  %signals = load ptr, ptr %at{_SIGNALS}
  {signals.block("%signals")}
  %seat = atomicrmw add ptr %at{_SEATS}, i64 1 monotonic
  br label %look
look:
  %begun = phi i64 [0, %entry], [0, %taken], [%since, %spin], [0, %awake]
  %ticket = load atomic i64, ptr %team acquire, align 8
  %some = and i64 %ticket, 4294967295
  %members = load atomic i64, ptr %at{_MEMBERS} monotonic, align 8
  %is_member = icmp ult i64 %seat, %members
  br i1 %is_member, label %member, label %sleep
member:
  %is_some = icmp ne i64 %some, 0
  br i1 %is_some, label %taken, label %idle
taken:
  call void @take(ptr %team)
  br label %look
idle:
  {_IS_LONG}
  br i1 %is_long, label %sleep, label %spin
spin:
  {_PAUSE}
  br label %look
sleep:
  call i32 @pthread_mutex_lock(ptr %at{_LOCK})
  atomicrmw add ptr %at{_SLEEPERS}, i64 1 seq_cst
  %latest = load atomic i64, ptr %team seq_cst, align 8
  %any = and i64 %latest, 4294967295
  %now = load atomic i64, ptr %at{_MEMBERS} monotonic, align 8
  %is_in = icmp ult i64 %seat, %now
  %is_any = icmp ne i64 %any, 0
  %is_wanted = and i1 %is_in, %is_any
  br i1 %is_wanted, label %awake, label %wait
wait:
  call i32 @pthread_cond_wait(ptr %at{_OFFERED}, ptr %at{_LOCK})
  br label %awake
awake:
  atomicrmw sub ptr %at{_SLEEPERS}, i64 1 seq_cst
  call i32 @pthread_mutex_unlock(ptr %at{_LOCK})
  br label %look
}}
{signals.DECLARED}"""
"""The endless loop of a thread of the team. Signals are left to Python's threads."""

PARALLEL = f"""{_TAKE}
define i32 @{{name}}(ptr %words) {{
entry:
  %thread = alloca i64
  %team = load ptr, ptr %words
  %membersat = getelementptr i64, ptr %words, i64 1
  %members = load i64, ptr %membersat
  %tapeat = getelementptr i64, ptr %words, i64 2
  %tape = load ptr, ptr %tapeat
  %countat = getelementptr i64, ptr %words, i64 3
  %count = load i64, ptr %countat
  %parts = getelementptr i64, ptr %words, i64 4
{_fields(_PARTS, _TAPE, _MEMBERS, _STATUS, _MODE, _LEFT, _BUSY, _STARTED, _WORK)}
{_fields(_SLEEPERS, _WAITING, _LOCK, _OFFERED, _ENDED)}
  %tried = cmpxchg ptr %at{_BUSY}, i64 0, i64 1 acq_rel monotonic
  %is_free = extractvalue {{ i64, i1 }} %tried, 1
  br i1 %is_free, label %start, label %alone
alone:
  %number = phi i64 [0, %entry], [%following, %more]
  %partat = getelementptr ptr, ptr %parts, i64 %number
  %part = load ptr, ptr %partat
  %status = call i32 %tape(ptr %part)
  %following = add i64 %number, 1
  %is_good = icmp eq i32 %status, 0
  br i1 %is_good, label %more, label %failed
more:
  %is_over = icmp eq i64 %following, %count
  br i1 %is_over, label %failed, label %alone
failed:
  ret i32 %status
start:
  %started = load i64, ptr %at{_STARTED}
  %are_enough = icmp uge i64 %started, %members
  br i1 %are_enough, label %offer, label %another
another:
  %work = load ptr, ptr %at{_WORK}
  %refused = call i32 @pthread_create(ptr %thread, ptr null, ptr %work, ptr %team)
  %is_refused = icmp ne i32 %refused, 0
  br i1 %is_refused, label %offer, label %counted
counted:
  %one_more = add i64 %started, 1
  store i64 %one_more, ptr %at{_STARTED}
  br label %start
offer:
  store atomic ptr %parts, ptr %at{_PARTS} monotonic, align 8
  store atomic ptr %tape, ptr %at{_TAPE} monotonic, align 8
  store atomic i64 %members, ptr %at{_MEMBERS} monotonic, align 8
  store atomic i32 0, ptr %at{_STATUS} monotonic, align 8
  %mode = call i64 @mode()
  store atomic i64 %mode, ptr %at{_MODE} monotonic, align 8
  store atomic i64 %count, ptr %at{_LEFT} monotonic, align 8
  %last = load atomic i64, ptr %team monotonic, align 8
  %next = add i64 %last, 4294967296
  %ticket = or i64 %next, %count
  store atomic i64 %ticket, ptr %team seq_cst, align 8
  %sleepers = load atomic i64, ptr %at{_SLEEPERS} seq_cst, align 8
  %all_are_awake = icmp eq i64 %sleepers, 0
  br i1 %all_are_awake, label %take, label %wake
wake:
  call i32 @pthread_mutex_lock(ptr %at{_LOCK})
  call i32 @pthread_cond_broadcast(ptr %at{_OFFERED})
  call i32 @pthread_mutex_unlock(ptr %at{_LOCK})
  br label %take
take:
  call void @take(ptr %team)
  br label %look
look:
  %begun = phi i64 [0, %take], [%since, %spin]
  %left = load atomic i64, ptr %at{_LEFT} acquire, align 8
  %is_done = icmp eq i64 %left, 0
  br i1 %is_done, label %done, label %idle
idle:
  {_IS_LONG}
  br i1 %is_long, label %block, label %spin
spin:
  {_PAUSE}
  br label %look
block:
  call i32 @pthread_mutex_lock(ptr %at{_LOCK})
  store atomic i64 1, ptr %at{_WAITING} seq_cst, align 8
  br label %check
check:
  %still_left = load atomic i64, ptr %at{_LEFT} seq_cst, align 8
  %is_ended = icmp eq i64 %still_left, 0
  br i1 %is_ended, label %unblock, label %wait
wait:
  call i32 @pthread_cond_wait(ptr %at{_ENDED}, ptr %at{_LOCK})
  br label %check
unblock:
  store atomic i64 0, ptr %at{_WAITING} seq_cst, align 8
  call i32 @pthread_mutex_unlock(ptr %at{_LOCK})
  br label %done
done:
  %result = load atomic i32, ptr %at{_STATUS} monotonic, align 8
  store atomic i64 0, ptr %at{_BUSY} release, align 8
  ret i32 %result
}}
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)"""
"""Runs tapes concurrently. The words: the address of the team, the number of threads
that may help, the address of `TAPE`, the number of tapes, and the addresses of their
words. Returns the status of a tape that failed, or 0.
"""


class Team:
    """The memory through which threads and callers synchronize."""

    def __init__(self) -> None:
        self._words = (ctypes.c_int64 * (_SIZE + 8))()
        start = ctypes.addressof(self._words)
        self.address = start + -start % 64
        self.work = compiler().function(_WORK_TEXT, quick=True)
        self.reset()

    def reset(self) -> None:
        """Resets the team to the state without threads."""
        ctypes.memset(self.address, 0, 8 * _SIZE)
        for word, address in (
            (_WORK, self.work.address),
            (_SIGNALS, ctypes.addressof(signals.asynchronous())),
        ):
            ctypes.c_int64.from_address(self.address + 8 * word).value = address
        posix = ctypes.CDLL(None)
        posix.pthread_mutex_init(ctypes.c_void_p(self.address + 8 * _LOCK), None)
        for condition in (_OFFERED, _ENDED):
            at = ctypes.c_void_p(self.address + 8 * condition)
            posix.pthread_cond_init(at, None)


@cache
def team() -> Team:
    """The team of the process; a forked child gets its own."""
    made = Team()
    os.register_at_fork(after_in_child=made.reset)
    return made
